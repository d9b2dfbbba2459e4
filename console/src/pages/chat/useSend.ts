import { useRef } from 'react';
import { useChange } from '../../api/change';
import { randomId } from '../../api/random';
import { sendMessage } from '../../api/threads';
import type { MessageKind } from '../../api/thread-events';
import { type Draft, drafts } from '../../chat/drafts';

interface Wish {
  draft: Draft;
  kind: MessageKind;
}

export type Send = ReturnType<typeof useSend>;

/**
 * Sends the draft into a thread that `into` names or makes. What failed on the way and is sent
 * again as it was is the same request: it arrives once.
 */
export function useSend(
  draftKey: string,
  into: () => Promise<string>,
  onSent: (thread: string) => void,
) {
  const attempt = useRef({ body: '', key: '' });
  return useChange(async ({ draft, kind }: Wish) => {
    const attachments = draft.chips.flatMap(({ attachment }) => attachment ?? []);
    const message = { text: draft.text, kind, attachments };
    const body = JSON.stringify(message);
    if (attempt.current.body !== body) attempt.current = { body, key: randomId() };
    const thread = await into();
    await sendMessage(thread, message, attempt.current.key);
    attempt.current = { body: '', key: '' };
    drafts.sent(draftKey, draft);
    onSent(thread);
    return thread;
  }, []);
}
