import { Button, Drawer } from '@mantine/core';
import { useDisclosure, useMediaQuery } from '@mantine/hooks';
import { getRouteApi, Link, Outlet } from '@tanstack/react-router';
import { useUploadGuard } from '../../chat/useMessageDraft';
import { PreviewDrawer } from '../../parts/preview/PreviewDrawer';
import { LazyPreviewPanel } from '../../parts/preview/LazyPreviewPanel';
import { usePreview } from '../../parts/preview/usePreview';
import styles from './Chat.module.css';
import { SidePanel } from './SidePanel';
import { ThreadList } from './ThreadList';

const route = getRouteApi('/frame/w/$workspace/chat');

/** Threads at the left, one of them in the middle, a file that is looked at on the right. */
export function ChatPage() {
  const { workspace } = route.useParams();
  const [isListOpen, list] = useDisclosure(false);
  const [file, show] = usePreview();
  const hasRoom = useMediaQuery('(min-width: 75em)', undefined, { getInitialValueInEffect: false });
  useUploadGuard();
  const close = () => show(null);
  return (
    <div className={styles.chat}>
      <aside className={styles.threads} aria-label="Threads">
        <ThreadList key={workspace} workspace={workspace} />
      </aside>
      <div className={styles.middle}>
        <div className={styles.bar}>
          <Button size="xs" variant="default" onClick={list.open}>
            Threads
          </Button>
          <Button
            size="xs"
            variant="default"
            renderRoot={(props) => (
              <Link to="/w/$workspace/chat" params={{ workspace }} {...props} />
            )}
          >
            New thread
          </Button>
        </div>
        <Outlet />
      </div>
      {file &&
        (hasRoom ? (
          <SidePanel onClose={close}>
            <LazyPreviewPanel file={file} onShow={show} onClose={close} />
          </SidePanel>
        ) : (
          <PreviewDrawer file={file} onShow={show} onClose={close} />
        ))}
      <Drawer
        opened={isListOpen}
        onClose={list.close}
        title="Threads"
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <ThreadList key={workspace} workspace={workspace} onGo={list.close} />
      </Drawer>
    </div>
  );
}
