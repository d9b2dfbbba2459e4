import { type ComponentProps, lazy, Suspense } from 'react';
import { Loading } from '../Loading';
import type { PreviewPanel } from './PreviewPanel';

/** Most of what shows files is of no use before somebody looks at one. */
const Panel = lazy(async () => ({ default: (await import('./PreviewPanel')).PreviewPanel }));

/** A preview that is loaded with the first file that is looked at. */
export const LazyPreviewPanel = (props: ComponentProps<typeof PreviewPanel>) => (
  <Suspense fallback={<Loading />}>
    <Panel {...props} />
  </Suspense>
);
