import { useCallback, useMemo } from 'react';
import { fromBase64 } from '../../chat/bytes';
import styles from './Thread.module.css';

interface Props {
  mediaType: 'image/png' | 'image/jpeg';
  base64: string;
  /** What the program says of it. */
  text: string;
}

const BEGINNINGS = {
  'image/png': [0x89, 0x50, 0x4e, 0x47],
  'image/jpeg': [0xff, 0xd8, 0xff],
} as const;

/** A picture that code drew: taken only where it begins as its type does. */
export function DisplayPicture({ mediaType, base64, text }: Props) {
  const bytes = useMemo(() => {
    const read = fromBase64(base64);
    return read && BEGINNINGS[mediaType].every((byte, at) => read[at] === byte) ? read : null;
  }, [mediaType, base64]);
  const load = useCallback(
    (picture: HTMLImageElement | null) => {
      if (picture === null || bytes === null) return;
      const address = URL.createObjectURL(new Blob([bytes], { type: mediaType }));
      picture.src = address;
      return () => URL.revokeObjectURL(address);
    },
    [bytes, mediaType],
  );
  if (bytes === null) return <div className={styles.remark}>A picture that cannot be read.</div>;
  return <img ref={load} className={styles.picture} alt={text || 'A picture that code drew'} />;
}
