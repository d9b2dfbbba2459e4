import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Failure } from '../api/failure';
import { FailureNote } from './FailureNote';
import { Loading } from './Loading';
import { Notice } from './Notice';

interface Props<Data> {
  query: UseQueryResult<Data>;
  children: (data: Data) => ReactNode;
}

/** What a query gives, or that it is on its way, or why it does not come. */
export function Loaded<Data>({ query, children }: Props<Data>) {
  if (query.data !== undefined) {
    return (
      <>
        {query.isError && <Stale error={query.error} />}
        {children(query.data)}
      </>
    );
  }
  if (query.isError) return <FailureNote error={query.error} />;
  return <Loading />;
}

function Stale({ error }: { error: unknown }) {
  const isLost = error instanceof Failure && error.status === 0;
  if (!isLost) return <FailureNote error={error} />;
  return (
    <Notice tone="warn" title="The connection is lost">
      What you see is the last that arrived. It is asked for again by itself.
    </Notice>
  );
}
