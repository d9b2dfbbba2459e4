import { AppShell, Burger, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Outlet } from '@tanstack/react-router';
import { Notice } from '../parts/Notice';
import styles from './Frame.module.css';
import { Rail } from './Rail';
import { useSession } from './useSession';

/** What stands around every page of somebody who is signed in. */
export function Frame() {
  const session = useSession();
  const [isOpen, drawer] = useDisclosure(false);
  return (
    <AppShell
      header={{ height: 48, collapsed: false }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'sm', sm: 'lg' }}
    >
      <a className={styles.skip} href="#page">
        Skip to the page
      </a>
      <AppShell.Header>
        <div className={styles.top}>
          <Burger
            hiddenFrom="sm"
            size="sm"
            opened={isOpen}
            onClick={drawer.toggle}
            aria-label={isOpen ? 'Close navigation' : 'Open navigation'}
            aria-expanded={isOpen}
          />
          Glovebox
        </div>
      </AppShell.Header>
      <AppShell.Navbar
        aria-label="Console"
        className={styles.drawer ?? ''}
        mod={{ closed: !isOpen }}
        onKeyDown={(event) => {
          if (event.key === 'Escape') drawer.close();
        }}
      >
        <Rail session={session} onGo={drawer.close} />
      </AppShell.Navbar>
      <AppShell.Main id="page" tabIndex={-1}>
        <Stack>
          {session.is_insecure && (
            <Notice tone="warn" title="This connection is not encrypted">
              Passwords and files can be read on the way. Whoever runs the server gives it a
              certificate, or puts it behind a program that has one.
            </Notice>
          )}
          <Outlet />
        </Stack>
      </AppShell.Main>
    </AppShell>
  );
}
