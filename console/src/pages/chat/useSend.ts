import { useMutation, type UseMutationResult } from '@tanstack/react-query';
import { useRef } from 'react';
import { randomId } from '../../api/random';
import { sendMessage } from '../../api/threads';
import type { MessageKind } from '../../api/thread-events';
import { type Draft, drafts } from '../../chat/drafts';

interface Wish {
  draft: Draft;
  kind: MessageKind;
}

export type Send = UseMutationResult<string, Error, Wish>;

/**
 * Sends the draft into a thread that `into` names or makes. What failed on the way and is sent
 * again as it was is the same request: it arrives once.
 */
export function useSend(
  draftKey: string,
  into: () => Promise<string>,
  onSent: (thread: string) => void,
): Send {
  const attempt = useRef({ body: '', key: '' });
  return useMutation({
    mutationFn: async ({ draft, kind }: Wish) => {
      const attachments = draft.chips.flatMap(({ attachment }) => attachment ?? []);
      const message = { text: draft.text, kind, attachments };
      const body = JSON.stringify(message);
      if (attempt.current.body !== body) attempt.current = { body, key: randomId() };
      const thread = await into();
      await sendMessage(thread, message, attempt.current.key);
      return thread;
    },
    onSuccess: (thread, { draft }) => {
      attempt.current = { body: '', key: '' };
      drafts.sent(draftKey, draft);
      onSent(thread);
    },
  });
}
