import '@mantine/core/styles.css';
import './app/tones.css';

import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { nonce } from './app/nonce';
import { makeQueries } from './app/queries';
import { makeRouter } from './app/router';
import { theme, variables } from './app/theme';

const OPEN_TO_ALL = ['/sign-in', '/setup'];

const queries = makeQueries(() => {
  const { pathname, href } = router.state.location;
  if (OPEN_TO_ALL.includes(pathname)) return;
  queries.removeQueries();
  void router.navigate({ to: '/sign-in', search: { next: href } });
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
