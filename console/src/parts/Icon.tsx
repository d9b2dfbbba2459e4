const PATHS = {
  good: 'M3 8.5l3.2 3.2L13 5',
  warn: 'M8 2.5l6.2 11H1.8zM8 6.5v3.2M8 11.6v.2',
  bad: 'M4 4l8 8M12 4l-8 8',
  info: 'M8 7v4.5M8 4.4v.2M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z',
  idle: 'M4 8h8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  attach:
    'M13 7.5l-5 5a3 3 0 0 1-4.3-4.3l5.2-5.2a2 2 0 0 1 2.9 2.9l-5.1 5.1a.9.9 0 0 1-1.4-1.3l4.6-4.6',
  send: 'M8 13V3M4 7l4-4 4 4',
  stop: 'M4.5 4.5h7v7h-7z',
  download: 'M8 2.5v7.5M4.8 7L8 10.2 11.2 7M3 13h10',
  again: 'M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3',
  add: 'M8 3v10M3 8h10',
} as const;

export type IconName = keyof typeof PATHS;

/** A sign beside a word; never instead of one. */
export function Icon({ name, size = 14 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
