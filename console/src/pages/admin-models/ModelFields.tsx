import { TextInput } from '@mantine/core';
import { Fields } from '../../parts/Fields';
import { NumberField } from '../../parts/NumberField';

/** What is set of a model, but its key. */
export interface ModelValues {
  name: string;
  base_url: string;
  model: string;
  context_tokens: number;
  connect_timeout_seconds: number;
  silence_timeout_seconds: number;
  reply_timeout_seconds: number;
}

interface Props {
  values: ModelValues;
  set: (change: Partial<ModelValues>) => void;
}

export const ModelFields = ({ values, set }: Props) => (
  <Fields>
    <TextInput
      label="Name"
      description="What people call it"
      value={values.name}
      maxLength={80}
      onChange={(event) => set({ name: event.currentTarget.value })}
    />
    <TextInput
      label="Base URL"
      description="Of an OpenAI-compatible endpoint, such as https://models.example/v1"
      type="url"
      value={values.base_url}
      onChange={(event) => set({ base_url: event.currentTarget.value })}
    />
    <TextInput
      label="Model"
      description="What the endpoint calls it"
      value={values.model}
      onChange={(event) => set({ model: event.currentTarget.value })}
    />
    <NumberField
      label="Context"
      unit="tokens"
      help="Question and answer together"
      min={1024}
      value={values.context_tokens}
      onChange={(context_tokens) => set({ context_tokens })}
    />
    <NumberField
      label="Time to connect"
      unit="seconds"
      min={1}
      value={values.connect_timeout_seconds}
      onChange={(connect_timeout_seconds) => set({ connect_timeout_seconds })}
    />
    <NumberField
      label="Longest silence"
      unit="seconds"
      help="After which an answer is given up"
      min={1}
      value={values.silence_timeout_seconds}
      onChange={(silence_timeout_seconds) => set({ silence_timeout_seconds })}
    />
    <NumberField
      label="Longest reply"
      unit="seconds"
      help="Model and code together, after which a reply is ended"
      min={1}
      value={values.reply_timeout_seconds}
      onChange={(reply_timeout_seconds) => set({ reply_timeout_seconds })}
    />
  </Fields>
);

export const isComplete = ({ name, base_url, model }: ModelValues): boolean =>
  [name, base_url, model].every((text) => text.trim() !== '');
