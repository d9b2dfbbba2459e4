import { useEffect, useSyncExternalStore } from 'react';
import { type Draft, drafts } from './drafts';

/** What was typed and attached here and is not sent yet. */
export const useMessageDraft = (key: string): Draft =>
  useSyncExternalStore(drafts.subscribe, () => drafts.get(key));

/** Asks before the browser leaves the console while files are on their way. */
export function useUploadGuard() {
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => {
      if (drafts.isUploading) event.preventDefault();
    };
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, []);
}
