import { type CSSVariablesResolver, createTheme } from '@mantine/core';

export const theme = createTheme({
  primaryColor: 'blue',
  // The lighter shades leave white text on a button hard to read.
  primaryShade: { light: 9, dark: 9 },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  defaultRadius: 'md',
  respectReducedMotion: true,
  components: {
    Anchor: { defaultProps: { inherit: true } },
    // The label stands above a field, the help below.
    InputWrapper: {
      defaultProps: { inputWrapperOrder: ['label', 'input', 'description', 'error'] },
    },
  },
  headings: { sizes: { h1: { fontSize: '1.5rem' }, h2: { fontSize: '1.125rem' } } },
});

/** Help texts and errors as dark as a contrast of 4.5 to 1 asks for. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    '--mantine-color-dimmed': '#505861',
    '--mantine-color-error': 'var(--gb-bad)',
    '--mantine-color-body': 'var(--gb-panel)',
  },
  dark: {
    '--mantine-color-dimmed': '#b3bac2',
    '--mantine-color-error': 'var(--gb-bad)',
    '--mantine-color-body': 'var(--gb-panel)',
  },
});
