import { Button, TextInput } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { Thread } from '../../api/views';
import { threadsQuery } from '../../api/threads';
import { ago } from '../../format/time';
import { Icon } from '../../parts/Icon';
import { Loaded } from '../../parts/Loaded';
import { State } from '../../parts/State';
import { useNow } from '../../parts/useNow';
import styles from './ThreadList.module.css';

const route = getRouteApi('/frame/w/$workspace/chat');

interface Props {
  workspace: string;
  /** Called when the person goes somewhere, so that a drawer closes. */
  onGo?: () => void;
}

export function ThreadList({ workspace, onGo }: Props) {
  const search = route.useSearch();
  // From wherever it is: whoever looks for another thread keeps the one that is open.
  const navigate = useNavigate();
  // The address follows what is typed; the other way round letters would get lost.
  const [typed, setTyped] = useState(search.q ?? '');
  const query = useInfiniteQuery(threadsQuery(workspace, search.q));
  const filter = (q: string) => {
    setTyped(q);
    const { preview } = search;
    void navigate({
      to: '.',
      search: { ...(preview ? { preview } : {}), ...(q === '' ? {} : { q }) },
      replace: true,
    });
  };
  return (
    <div className={styles.list}>
      <div className={styles.head}>
        <Button
          size="sm"
          leftSection={<Icon name="add" size={12} />}
          onClick={onGo}
          renderRoot={(props) => <Link to="/w/$workspace/chat" params={{ workspace }} {...props} />}
        >
          New thread
        </Button>
        <TextInput
          type="search"
          size="xs"
          label="Find a thread"
          value={typed}
          onChange={(event) => filter(event.currentTarget.value)}
        />
      </div>
      <Loaded query={query}>
        {({ pages }) => (
          <Threads
            threads={pages.flatMap(({ items }) => items)}
            q={search.q}
            onGo={onGo}
            more={
              query.hasNextPage && (
                <Button
                  variant="default"
                  size="xs"
                  fullWidth
                  loading={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  Show older threads
                </Button>
              )
            }
          />
        )}
      </Loaded>
    </div>
  );
}

interface ThreadsProps {
  threads: readonly Thread[];
  q: string | undefined;
  onGo: (() => void) | undefined;
  more: ReactNode;
}

function Threads({ threads, q, onGo, more }: ThreadsProps) {
  const now = useNow(30_000);
  if (threads.length === 0) {
    return (
      <div className={styles.empty}>
        {q === undefined
          ? 'Your threads will be here, and those that others share. Send a message to begin one.'
          : `No thread is called “${q}”.`}
      </div>
    );
  }
  return (
    <ul className={styles.threads}>
      {threads.map((thread) => (
        <li key={thread.id}>
          <Link
            className={styles.thread ?? ''}
            to="/w/$workspace/chat/$thread"
            params={{ workspace: thread.workspace_id, thread: thread.id }}
            search={q === undefined ? {} : { q }}
            activeOptions={{ includeSearch: false }}
            onClick={onGo}
          >
            <span className={styles.title}>{thread.title}</span>
            <span className={styles.about}>
              {ago(thread.active_at, now)}
              {!thread.is_own && <span>{thread.owner.name}</span>}
              {thread.is_shared && <span>shared</span>}
              {thread.running_reply && <State tone="info">running</State>}
            </span>
          </Link>
        </li>
      ))}
      {more && <li>{more}</li>}
    </ul>
  );
}
