import { Drawer } from '@mantine/core';
import type { FileFacts } from './useFileFacts';
import { LazyPreviewPanel } from './LazyPreviewPanel';
import styles from './PreviewDrawer.module.css';
import type { FileRef } from '../../api/files';

interface Props {
  file: FileRef;
  known?: FileFacts | undefined;
  onShow: (file: FileRef) => void;
  onClose: () => void;
}

/** The preview over the page, where there is no room beside it. */
export const PreviewDrawer = (props: Props) => (
  <Drawer.Root opened position="right" size="min(100%, 860px)" onClose={props.onClose}>
    <Drawer.Overlay />
    <Drawer.Content aria-label="Preview">
      <Drawer.Body className={styles.body ?? ''}>
        <LazyPreviewPanel {...props} />
      </Drawer.Body>
    </Drawer.Content>
  </Drawer.Root>
);
