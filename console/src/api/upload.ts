import { Failure, failureOf, unreachable } from './failure';

export interface Upload<View> {
  done: Promise<View>;
  cancel: () => void;
}

/** The person has taken it back. */
export const isCancelled = (error: unknown) =>
  error instanceof Failure && error.code === 'cancelled';

const cancelled = () => new Failure(0, 'cancelled', 'The upload was cancelled', '', null, {});

const readBody = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/**
 * Sends a file as it is. This is the one call that is not made by `fetch`, which cannot say how
 * far an upload is.
 */
export function upload<View>(
  path: '/attachments' | '/knowledge',
  workspace_id: string,
  file: File,
  onProgress: (sent: number) => void,
): Upload<View> {
  const request = new XMLHttpRequest();
  const done = new Promise<View>((resolve, reject) => {
    request.upload.onprogress = ({ loaded }) => onProgress(loaded);
    request.onabort = () => reject(cancelled());
    request.onerror = () => reject(unreachable());
    request.onload = () => {
      const body = readBody(request.responseText);
      if (request.status >= 200 && request.status < 300) resolve(body as View);
      else reject(failureOf(request.status, body));
    };
    const query = new URLSearchParams({ workspace_id, name: file.name });
    request.open('POST', `/api/v1${path}?${query.toString()}`);
    request.setRequestHeader('content-type', 'application/octet-stream');
    request.send(file);
  });
  return { done, cancel: () => request.abort() };
}
