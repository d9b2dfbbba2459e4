import type { ReactNode } from 'react';
import type { PlainChange } from '../api/change';
import type { Sandbox } from '../api/views';
import { Confirm } from './Confirm';

interface Props {
  sandbox: Sandbox;
  /** What is asked, with whose it is. */
  title: string;
  /** What else tells this sandbox from others. */
  children?: ReactNode;
  change: PlainChange;
  onClose: () => void;
}

/** Asks before a sandbox is ended, by whomever. */
export const EndSandbox = ({ sandbox, title, children, change, onClose }: Props) => (
  <Confirm title={title} action="End sandbox" change={change} onClose={onClose}>
    What runs in it stops at once, and its variables and files are gone. Artifacts that were
    collected stay. {children}
    <code>{sandbox.id}</code>
  </Confirm>
);
