import { Button, Loader } from '@mantine/core';
import type { Model, ModelTest, ModelTestStep } from '../../api/views';
import { useChange } from '../../api/change';
import { testModel } from '../../api/models';
import { type Column, DataTable } from '../../parts/DataTable';
import { FailureNote } from '../../parts/FailureNote';
import { sentence } from '../../format/sentence';
import { State, type Tone } from '../../parts/State';

const TONES: Record<string, Tone> = { pass: 'good', warn: 'warn', fail: 'bad' };

const columns: readonly Column<ModelTestStep>[] = [
  {
    name: 'Result',
    cell: (step) => <State tone={TONES[step.status] ?? 'idle'}>{step.status}</State>,
  },
  { name: 'Step', cell: (step) => step.title },
  { name: 'What was found', cell: (step) => sentence(step.message) },
  { name: 'Fix', cell: (step) => sentence(step.fix ?? '') },
];

/** Asks the endpoint whether chat can work with it. */
export function ModelTester({ model }: { model: Model }) {
  const test = useChange(() => testModel(model.id), []);
  return (
    <>
      <p>
        Connects, asks for a word, and asks for a call of a tool, as chat does. It takes some
        seconds, and the endpoint may charge for it.
      </p>
      <div>
        <Button variant="default" loading={test.isPending} onClick={() => test.mutate()}>
          {test.data ? 'Test again' : 'Test this model'}
        </Button>
      </div>
      {test.isPending && (
        <div role="status">
          <Loader size="sm" aria-hidden="true" /> Testing {model.name}
        </div>
      )}
      <FailureNote error={test.error} />
      {test.data && <Found test={test.data} />}
    </>
  );
}

function Found({ test }: { test: ModelTest }) {
  return (
    <>
      <div role="status">
        <State tone={test.is_passed ? 'good' : 'bad'}>{test.is_passed ? 'passed' : 'failed'}</State>{' '}
        {test.latency_ms != null && `The first word came after ${test.latency_ms} ms.`}
      </div>
      <DataTable
        label="steps of the test"
        rows={test.steps}
        rowKey={(step) => step.id}
        columns={columns}
        empty="The test did nothing."
      />
      {test.models && test.models.length > 0 && (
        <p>
          The endpoint has: <code>{test.models.slice(0, 50).join(', ')}</code>
        </p>
      )}
    </>
  );
}
