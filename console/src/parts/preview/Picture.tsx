import { useState } from 'react';
import { partOf } from '../../api/files';
import { Notice } from '../Notice';
import pageStyles from './Pages.module.css';
import styles from './PreviewPanel.module.css';
import { useZoom, zoomBy } from './useZoom';
import { ZoomBar } from './ZoomBar';

interface Props {
  preview: string;
  name: string;
  size: { width: number; height: number };
}

export function Picture({ preview, name, size }: Props) {
  const zoom = useZoom();
  const [isBroken, setBroken] = useState(false);
  if (isBroken) {
    return (
      <div className={styles.pad}>
        <Notice tone="warn" title="The picture did not load.">
          Close the preview and open it again. The download has all of it.
        </Notice>
      </div>
    );
  }
  return (
    <>
      <ZoomBar zoom={zoom}>
        <span>
          {size.width} × {size.height} pixels
        </span>
      </ZoomBar>
      <div
        className={styles.scroll}
        tabIndex={0}
        role="region"
        aria-label={`Picture ${name}`}
        onKeyDown={(event) => zoomBy(zoom, event)}
      >
        <img
          className={zoom.factor === null ? pageStyles.fitted : pageStyles.sized}
          src={partOf(preview, 'image')}
          alt={name}
          width={size.width}
          height={size.height}
          style={zoom.factor === null ? {} : { width: size.width * zoom.factor }}
          onError={() => setBroken(true)}
        />
      </div>
    </>
  );
}
