import type { AuditFilter } from '../../api/queries';

const FIELDS = ['action', 'actor', 'since', 'until', 'cursor'] as const;

/** Reads the filter from an address, whatever somebody has typed into it. */
export function readAuditSearch(search: Record<string, unknown>): AuditFilter {
  const filter: AuditFilter = {};
  for (const field of FIELDS) {
    const value = search[field];
    if (typeof value === 'string' && value !== '') filter[field] = value;
  }
  return filter;
}

/** Where the same entries come as a file, all pages of them. */
export function exportAddress(form: 'csv' | 'json', search: AuditFilter): string {
  const query = new URLSearchParams();
  for (const field of FIELDS) {
    const value = search[field];
    if (field !== 'cursor' && value !== undefined) query.set(field, value);
  }
  return `/api/v1/admin/audit/export/${form}?${query.toString()}`;
}

/** A time as a field for local times takes it; empty where there is none. */
export function toField(time: string | undefined): string {
  const at = time === undefined ? Number.NaN : Date.parse(time);
  if (Number.isNaN(at)) return '';
  const local = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

/** What was typed into such a field, as the API takes it. */
export const fromField = (text: string): string | undefined =>
  text === '' ? undefined : new Date(text).toISOString();
