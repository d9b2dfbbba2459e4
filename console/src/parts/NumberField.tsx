import { NumberInput } from '@mantine/core';

interface Props {
  label: string;
  unit?: string;
  help?: string;
  /** What is wrong with it. */
  error?: string | null;
  value: number;
  min?: number;
  max?: number;
  isDisabled?: boolean;
  onChange: (value: number) => void;
}

/** A whole number with its unit. */
export function NumberField({ label, unit, help, isDisabled, onChange, ...rest }: Props) {
  return (
    <NumberInput
      {...rest}
      label={unit === undefined ? label : `${label} (${unit})`}
      description={help}
      allowNegative={false}
      allowDecimal={false}
      hideControls
      disabled={isDisabled ?? false}
      onChange={(value) => onChange(typeof value === 'number' ? value : Number(value))}
    />
  );
}
