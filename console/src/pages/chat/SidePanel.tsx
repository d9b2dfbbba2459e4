import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  type RefObject,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import styles from './Chat.module.css';

const KEPT = 'preview width';
const NARROWEST = 340;
const STEP = 40;

/** The thread keeps room to be read. */
const widest = () => Math.max(NARROWEST, window.innerWidth - 900);

const fitting = (width: number) => Math.min(widest(), Math.max(NARROWEST, width));

function kept(): number {
  try {
    return Number(localStorage.getItem(KEPT)) || 520;
  } catch {
    return 520;
  }
}

function keep(width: number) {
  try {
    localStorage.setItem(KEPT, String(width));
  } catch {
    // It is as wide as at first the next time.
  }
}

interface Props {
  onClose: () => void;
  children: ReactNode;
}

/** A panel at the right of which the width is remembered; Escape closes it. */
export function SidePanel({ onClose, children }: Props) {
  const panel = useRef<HTMLElement>(null);
  useFocusBack(panel);
  const [width, setWidth] = useState(kept);
  const present = fitting(width);
  const set = (next: number) => {
    setWidth(fitting(next));
    keep(fitting(next));
  };
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
    set(window.innerWidth - event.clientX);
  };
  const press = (event: KeyboardEvent) => {
    const change = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (change === undefined) return;
    event.preventDefault();
    set(present + change);
  };
  return (
    <>
      <div
        className={styles.grip}
        role="separator"
        aria-label="Width of the preview"
        aria-orientation="vertical"
        aria-valuenow={present}
        aria-valuemin={NARROWEST}
        aria-valuemax={widest()}
        tabIndex={0}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={drag}
        onKeyDown={press}
      />
      <aside
        ref={panel}
        className={styles.side}
        style={{ width: present }}
        aria-label="Preview"
        onKeyDown={(event) => {
          // A dialog that the panel has opened lies elsewhere, and closes by itself.
          const isHere = event.currentTarget.contains(event.target as Node);
          if (event.key === 'Escape' && isHere) onClose();
        }}
      >
        {children}
      </aside>
    </>
  );
}

/** Whoever was led into a panel is led back to where they came from when it closes. */
function useFocusBack(panel: RefObject<HTMLElement | null>) {
  useLayoutEffect(() => {
    const opener = document.activeElement;
    const { current } = panel;
    return () => {
      const { activeElement } = document;
      const isInside = activeElement === document.body || current?.contains(activeElement);
      if (isInside && opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, [panel]);
}
