import './app/mantine';
import './app/tones.css';

import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { sessionQuery } from './api/queries';
import { nonce } from './app/nonce';
import { makeQueries } from './app/queries';
import { makeRouter } from './app/router';
import { theme, variables } from './app/theme';

const OPEN_TO_ALL = ['/sign-in', '/setup'];

const queries = makeQueries(() => {
  const { pathname, href } = router.state.location;
  // Before anybody was signed in, the frame's own guard decides where to go.
  const wasSignedIn = queries.getQueryData(sessionQuery.queryKey) !== undefined;
  if (!wasSignedIn || OPEN_TO_ALL.includes(pathname)) return;
  void router.navigate({ to: '/sign-in', search: { next: href } }).then(() => queries.clear());
});
const router = makeRouter(queries);

const root = document.getElementById('root');
if (root === null) throw new Error('the page has no root');

createRoot(root).render(
  <StrictMode>
    <MantineProvider
      theme={theme}
      cssVariablesResolver={variables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
