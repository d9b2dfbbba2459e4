import { ActionIcon, Button, Progress } from '@mantine/core';
import { type Chip } from '../../chat/drafts';
import { bytes } from '../../format/bytes';
import { Icon } from '../../parts/Icon';
import styles from './Composer.module.css';

interface Props {
  chips: readonly Chip[];
  onRemove: (chip: Chip) => void;
  /** Sends one anew that did not arrive. */
  onAgain: (chip: Chip) => void;
}

/** The files that go with the next message, each with how far it is. */
export function Chips({ chips, onRemove, onAgain }: Props) {
  if (chips.length === 0) return null;
  return (
    <ul className={styles.chips} aria-label="Files of the next message">
      {chips.map((chip) => (
        <li
          key={chip.key}
          className={`${styles.chip ?? ''} ${chip.state === 'failed' ? (styles.failed ?? '') : ''}`}
        >
          <span className={styles.name}>
            {chip.name} <span className={styles.about}>{aboutOf(chip)}</span>
          </span>
          <ActionIcon
            variant="subtle"
            size="sm"
            aria-label={
              chip.state === 'uploading'
                ? `Cancel the upload of ${chip.name}`
                : `Remove ${chip.name}`
            }
            onClick={() => onRemove(chip)}
          >
            <Icon name="bad" size={12} />
          </ActionIcon>
          {chip.state === 'uploading' && (
            <Progress
              className={styles.progress ?? ''}
              size="xs"
              value={chip.bytes === 0 ? 0 : (chip.sent / chip.bytes) * 100}
              aria-label={`Upload of ${chip.name}`}
            />
          )}
          {chip.why !== null && (
            <span className={styles.why} role="alert">
              {chip.why}{' '}
              {chip.mayTryAgain && (
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-label={`Try again to send ${chip.name}`}
                  onClick={() => onAgain(chip)}
                >
                  Try again
                </Button>
              )}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

function aboutOf({ state, sent, bytes: all }: Chip): string {
  if (state !== 'uploading') return state === 'failed' ? 'not sent' : bytes(all);
  return `${bytes(Math.min(sent, all))} of ${bytes(all)}`;
}
