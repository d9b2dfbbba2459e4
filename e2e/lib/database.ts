import { execFileSync } from 'node:child_process';
import type { Server } from './server.js';

const ADD_PROFILE = `
import sqlite3, sys
file, id, name = sys.argv[1:]
rows = sqlite3.connect(file, timeout=20)
with rows:
    rows.execute(
        "INSERT INTO profiles (id, runtime, name, state, settings, created_at, activated_at) "
        "SELECT ?, runtime, ?, 'active', settings, created_at, activated_at FROM profiles",
        (id, name),
    )
`;

/**
 * Puts an active profile beside that of this machine, behind the server's back: it makes no second
 * one yet. Gives its id.
 */
export function addProfile(server: Server, name: string): string {
  const id = '01900000-0000-7000-8000-000000000001';
  execFileSync('python3', ['-c', ADD_PROFILE, server.database, id, name]);
  return id;
}
