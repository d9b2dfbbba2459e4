import { Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { chatQuery, createThread, threadsKey } from '../../api/threads';
import { drafts } from '../../chat/drafts';
import { useSession } from '../../frame/useSession';
import { Loaded } from '../../parts/Loaded';
import { Notice } from '../../parts/Notice';
import { Composer } from './Composer';
import styles from './NewThread.module.css';
import { useSend } from './useSend';

const route = getRouteApi('/frame/w/$workspace/chat/');

export function NewThread() {
  const { workspace } = route.useParams();
  const query = useQuery(chatQuery(workspace));
  useEffect(() => {
    document.title = 'Chat · Glovebox';
  }, []);
  const isRead = query.data && !query.data.may_write;
  return (
    <div className={styles.new}>
      <div className={styles.words}>
        <Title order={1}>Chat</Title>
        <p>
          Ask for a deck, a workbook or a number: the assistant writes Python and runs it in a
          sealed sandbox. Attach the files that it is about. What it makes stands in the thread, to
          be looked at and downloaded.
        </p>
        {!isRead && <p>Only you see a new thread. You can share it with the workspace later.</p>}
      </div>
      <Loaded query={query}>
        {(chat) =>
          chat.may_write ? (
            <Begin key={workspace} workspace={workspace} chat={chat} />
          ) : (
            <ReadsOnly />
          )
        }
      </Loaded>
    </div>
  );
}

const ReadsOnly = () => (
  <Notice tone="info" title="Viewers read threads that are shared">
    An admin of the workspace gives the role editor to those who are to begin some.
  </Notice>
);

type BeginProps = Pick<Parameters<typeof Composer>[0], 'workspace' | 'chat'>;

function Begin({ workspace, chat }: BeginProps) {
  const { user } = useSession();
  const navigate = route.useNavigate();
  const queries = useQueryClient();
  const draftKey = `${user.id} new ${workspace}`;
  // One that was made for a message that did not arrive takes the next try.
  const made = useRef<Promise<string> | null>(null);
  const into = () => {
    made.current ??= createThread(workspace).then(
      ({ id }) => id,
      (error: unknown) => {
        made.current = null;
        throw error;
      },
    );
    return made.current;
  };
  const send = useSend(draftKey, into, (thread) => {
    made.current = null;
    // What was typed meanwhile, and whether it is code, goes along.
    drafts.move(draftKey, `${user.id} ${thread}`);
    void queries.invalidateQueries({ queryKey: threadsKey(workspace) });
    void navigate({ to: '/w/$workspace/chat/$thread', params: { workspace, thread } });
  });
  return (
    <Composer
      draftKey={draftKey}
      workspace={workspace}
      chat={chat}
      isBusy={send.isPending}
      send={send}
      isBeginning
    />
  );
}
