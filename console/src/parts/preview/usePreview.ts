import { useNavigate, useSearch } from '@tanstack/react-router';
import type { FileKind, FileRef } from '../../api/files';

const KINDS: readonly FileKind[] = ['artifact', 'attachment', 'knowledge'];

/** The file of an address, whatever somebody has typed into it. */
export function readPreview(search: Record<string, unknown>): { preview?: string } {
  return fileOf(search.preview) === null ? {} : { preview: String(search.preview) };
}

export function fileOf(text: unknown): FileRef | null {
  if (typeof text !== 'string') return null;
  const [kind, id, ...rest] = text.split('.');
  const known = KINDS.find((one) => one === kind);
  if (!known || !id || rest.length > 0 || !/^[0-9a-f-]{1,64}$/.test(id)) return null;
  return { kind: known, id };
}

/** The file that is looked at beside a page, and a way to look at another or at none. */
export function usePreview(): [FileRef | null, (file: FileRef | null) => void] {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const show = (file: FileRef | null) => {
    const preview = file ? `${file.kind}.${file.id}` : undefined;
    void navigate({ to: '.', search: { ...search, preview } });
  };
  return [fileOf(search.preview), show];
}
