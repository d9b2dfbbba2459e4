import { Icon } from './Icon';
import styles from './State.module.css';

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'idle';

/** A state in a word, with a sign and a colour that say the same. */
export function State({ tone, children }: { tone: Tone; children: string }) {
  return (
    <span className={`${styles.state ?? ''} ${styles[tone] ?? ''}`}>
      <Icon name={tone} size={12} />
      {children}
    </span>
  );
}

/** Whether something is switched on. */
export const OnOff = ({ isOn }: { isOn: boolean }) => (
  <State tone={isOn ? 'good' : 'idle'}>{isOn ? 'on' : 'off'}</State>
);

const STATES: Record<string, Tone> = {
  active: 'good',
  ready: 'good',
  starting: 'info',
  draft: 'idle',
  suspended: 'idle',
  disabled: 'warn',
  ended: 'idle',
};

/** The state of a profile or a sandbox, by the API's word for it. */
export const NamedState = ({ name }: { name: string }) => (
  <State tone={STATES[name] ?? 'idle'}>{name}</State>
);
