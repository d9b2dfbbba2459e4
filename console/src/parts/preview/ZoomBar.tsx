import { Button, VisuallyHidden } from '@mantine/core';
import type { ReactNode } from 'react';
import styles from './PreviewPanel.module.css';
import type { Zoom } from './useZoom';

/** How large it is shown, with what else stands beside that. */
export const ZoomBar = ({ zoom, children }: { zoom: Zoom; children?: ReactNode }) => (
  <div className={styles.bar}>
    {children}
    <Button.Group>
      <Button size="compact-sm" variant="default" disabled={zoom.isSmallest} onClick={zoom.farther}>
        Smaller
      </Button>
      <Button size="compact-sm" variant="default" disabled={zoom.isLargest} onClick={zoom.closer}>
        Larger
      </Button>
      <Button
        size="compact-sm"
        variant="default"
        aria-pressed={zoom.factor === null}
        onClick={zoom.fit}
      >
        Fit
      </Button>
    </Button.Group>
    <span role="status">
      {zoom.factor === null ? (
        <VisuallyHidden>fits</VisuallyHidden>
      ) : (
        `${Math.round(zoom.factor * 100)} %`
      )}
    </span>
  </div>
);
