const PATHS = {
  good: 'M3 8.5l3.2 3.2L13 5',
  warn: 'M8 2.5l6.2 11H1.8zM8 6.5v3.2M8 11.6v.2',
  bad: 'M4 4l8 8M12 4l-8 8',
  info: 'M8 7v4.5M8 4.4v.2M14.5 8a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z',
  idle: 'M4 8h8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
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
