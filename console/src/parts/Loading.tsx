import { Loader } from '@mantine/core';

/** Something is on its way. */
export const Loading = () => (
  <div role="status">
    <Loader size="sm" aria-hidden="true" /> Loading
  </div>
);
