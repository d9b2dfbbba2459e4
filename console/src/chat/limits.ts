import type { UploadLimits } from '../api/views';
import { bytes } from '../format/bytes';

interface Sized {
  name: string;
  size: number;
}

/** Why a file cannot be sent beside those that are there; nothing where it can. */
export function refusal(
  file: Sized,
  present: readonly { bytes: number }[],
  limits: UploadLimits,
): string | null {
  if (present.length >= limits.max_files) {
    return `A message takes ${limits.max_files} files. Send this one with the next.`;
  }
  if (file.size > limits.max_file_bytes) {
    return `It has ${bytes(file.size)}, and a file may have ${bytes(limits.max_file_bytes)}.`;
  }
  const together = present.reduce((sum, one) => sum + one.bytes, file.size);
  if (together > limits.max_total_bytes) {
    const most = bytes(limits.max_total_bytes);
    return `With it the files have ${bytes(together)}, and all files of a thread may have ${most}.`;
  }
  return null;
}

/** The limits in a sentence. */
export const limitsText = ({ max_files, max_file_bytes, max_total_bytes }: UploadLimits) =>
  `Up to ${max_files} files, ${bytes(max_file_bytes)} each and ${bytes(max_total_bytes)} in a thread.`;
