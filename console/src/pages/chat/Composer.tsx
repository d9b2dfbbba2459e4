import { Anchor, Button, FileButton, Switch, Textarea } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { type ClipboardEvent, type KeyboardEvent, type RefObject, useEffect, useRef } from 'react';
import type { ChatState } from '../../api/views';
import { type Draft, drafts } from '../../chat/drafts';
import { limitsText } from '../../chat/limits';
import { useMessageDraft } from '../../chat/useMessageDraft';
import { useSession } from '../../frame/useSession';
import { DenialNotice } from '../../parts/DenialNotice';
import { FailureNote } from '../../parts/FailureNote';
import { Icon } from '../../parts/Icon';
import { Notice } from '../../parts/Notice';
import { Chips } from './Chips';
import styles from './Composer.module.css';
import { Examples } from './Examples';
import { indentAfter } from './indent';
import { StopButton } from './StopButton';
import { type Dropped, useFileDrop } from './useFileDrop';
import type { Send } from './useSend';
import type { Stop } from './useStop';

interface Props {
  /** Names the draft: the person, and the thread or the workspace. */
  draftKey: string;
  workspace: string;
  chat: ChatState;
  /** Whether a reply runs, which has to end first. */
  isBusy: boolean;
  /** Ends that reply; nothing for those who may not. */
  stop?: Stop | null;
  send: Send;
  /** Whether it begins a thread: then it says more of what can be asked for. */
  isBeginning?: boolean;
}

/** Where a message is written, with the files that go with it. */
export function Composer(props: Props) {
  const { draftKey, workspace, chat, isBusy, stop = null, send, isBeginning = false } = props;
  const draft = useMessageDraft(draftKey);
  const box = useRef<HTMLTextAreaElement>(null);
  useFocusAtFirst(box);
  const isCode = draft.isCode || !chat.has_model;
  const isUploading = draft.chips.some(({ state }) => state === 'uploading');
  const isDenied = isCode && Boolean(chat.code_execution);
  const attach = ({ files, folders }: Dropped) => {
    drafts.attach(draftKey, workspace, files, chat.limits);
    for (const name of folders) drafts.refuse(draftKey, name, FOLDER);
  };
  const isOver = useFileDrop(true, attach);
  const maySend = hasSomething(draft, isCode) && !isUploading && !isBusy && !isDenied;
  const go = () => {
    if (!maySend || send.isPending) return;
    send.mutate({ draft, kind: isCode ? 'code' : 'text' });
    box.current?.focus();
  };
  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== 'Enter') return;
    // During the composition of a character Enter chooses it; Safari says that by 229 alone.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.shiftKey) {
      if (isCode && indentAfter(event.currentTarget)) event.preventDefault();
      return;
    }
    event.preventDefault();
    go();
  };
  const paste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    attach({ files, folders: [] });
  };
  return (
    <div className={styles.composer}>
      {isOver && (
        <div className={styles.over} role="status">
          Drop the files to attach them
        </div>
      )}
      <div className={styles.inner}>
        <Obstacles chat={chat} isCode={isCode} isBeginning={isBeginning} />
        <FailureNote error={send.error} />
        {isBeginning && draft.text === '' && (
          <Examples
            isCode={isCode}
            onChoose={(text) => {
              drafts.set(draftKey, { text });
              box.current?.focus();
            }}
          />
        )}
        <form
          className={styles.box}
          aria-label="New message"
          onSubmit={(event) => {
            event.preventDefault();
            go();
          }}
        >
          <Chips
            chips={draft.chips}
            onRemove={(chip) => drafts.detach(draftKey, chip)}
            onAgain={(chip) => drafts.again(chip)}
          />
          <Textarea
            ref={box}
            variant="unstyled"
            aria-label={isCode ? 'Python to run' : 'Message'}
            placeholder={isCode ? 'Python to run' : 'Ask for something, or attach a file'}
            autosize
            minRows={isCode ? 3 : 1}
            maxRows={14}
            value={draft.text}
            spellCheck={!isCode}
            classNames={{ input: isCode ? (styles.code ?? '') : '' }}
            onChange={(event) => drafts.set(draftKey, { text: event.currentTarget.value })}
            onKeyDown={press}
            onPaste={paste}
          />
          <div className={styles.tools}>
            <FileButton multiple onChange={(files) => attach({ files, folders: [] })}>
              {(props) => (
                <Button
                  {...props}
                  size="xs"
                  variant="default"
                  title={limitsText(chat.limits)}
                  leftSection={<Icon name="attach" size={14} />}
                >
                  Attach
                </Button>
              )}
            </FileButton>
            <Switch
              label="Run code"
              checked={isCode}
              disabled={!chat.has_model}
              onChange={(event) => drafts.set(draftKey, { isCode: event.currentTarget.checked })}
            />
            {stop ? (
              <StopButton
                stop={stop}
                // The button is about to go away.
                onAsked={() => box.current?.focus()}
                className={styles.last ?? ''}
                size="xs"
              />
            ) : (
              <Button
                type="submit"
                className={styles.last ?? ''}
                size="xs"
                disabled={!maySend}
                loading={send.isPending}
                leftSection={<Icon name="send" size={14} />}
              >
                {isCode ? 'Run' : 'Send'}
              </Button>
            )}
          </div>
        </form>
        <div className={styles.help}>
          {!chat.has_model && !isBeginning && 'No model is set, so only Python is answered. '}
          {helpOf({ isUploading, isBusy, isCode, seconds: chat.execution_seconds })}{' '}
          {limitsText(chat.limits)}
        </div>
      </div>
    </div>
  );
}

const FOLDER = 'A folder cannot be attached. Pack it into an archive, or attach its files.';

/**
 * Whoever comes to a thread can type at once. Where a keyboard would come up over the page, or
 * somebody types elsewhere, nothing takes the focus.
 */
function useFocusAtFirst(box: RefObject<HTMLTextAreaElement | null>) {
  useEffect(() => {
    const isTyping = document.activeElement?.matches('input, textarea, select') ?? false;
    if (window.matchMedia('(pointer: fine)').matches && !isTyping) box.current?.focus();
  }, [box]);
}

const hasSomething = ({ text, chips }: Draft, isCode: boolean) =>
  text.trim() !== '' || (!isCode && chips.some(({ state }) => state === 'ready'));

interface Help {
  isUploading: boolean;
  isBusy: boolean;
  isCode: boolean;
  seconds: number;
}

function helpOf({ isUploading, isBusy, isCode, seconds }: Help): string {
  if (isUploading) return 'It can be sent when the files have arrived.';
  if (isBusy) return 'It can be sent when the reply has ended.';
  const keys = 'Enter sends, Shift-Enter begins a line.';
  return isCode ? `${keys} Code may run for ${seconds} s.` : keys;
}

type ObstaclesProps = Required<Pick<Props, 'chat' | 'isBeginning'>> & { isCode: boolean };

/** What keeps code or the assistant from working here, and what to do. */
function Obstacles({ chat, isCode, isBeginning }: ObstaclesProps) {
  const { user } = useSession();
  return (
    <>
      {/* In a thread there is less room for what was said when it was begun. */}
      {!chat.has_model && isBeginning && (
        <Notice tone="info" title="No model is set, so nobody answers words">
          Type Python: it runs in the sandbox of this thread, with the files that you attach.{' '}
          {user.is_system_admin ? (
            <Anchor component={Link} underline="always" to="/admin/system/models">
              Add a model at Admin → System → Models
            </Anchor>
          ) : (
            'A system admin adds a model at Admin → System → Models.'
          )}
        </Notice>
      )}
      {chat.code_execution && (
        <>
          <DenialNotice denial={chat.code_execution} />
          {!isCode && <div>The assistant can answer, and runs no code until then.</div>}
        </>
      )}
    </>
  );
}
