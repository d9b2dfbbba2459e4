import { useLocation } from '@tanstack/react-router';
import { useState } from 'react';
import type { ApiDocument, Operation } from '../../api/document';
import styles from './ApiReference.module.css';
import { FieldTable } from './FieldTable';
import { bodyOf, type Call, curlOf, fieldsOf, kindOf } from './reading';
import { Words } from './Words';

interface Props {
  document: ApiDocument;
  call: Call;
}

/** One call, folded until somebody wants it or the address names it. */
export function CallDetails({ document, call }: Props) {
  const id = call.operation.operationId;
  const isNamed = useLocation({ select: (location) => location.hash === id });
  const [isOpen, setOpen] = useState(isNamed);
  return (
    <details
      id={id}
      className={styles.call}
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>
        <span className={styles.method}>{call.method}</span>
        <code className={styles.path}>{call.path}</code>
        <span className={styles.summary}>
          <Words text={call.operation.summary ?? ''} />
        </span>
      </summary>
      {isOpen && <Inner document={document} call={call} />}
    </details>
  );
}

function Inner({ document, call }: Props) {
  const { operation } = call;
  const parameters = operation.parameters ?? [];
  const body = bodyOf(operation.requestBody?.content);
  return (
    <div className={styles.inner}>
      {operation.description !== undefined && (
        <p>
          <Words text={operation.description} />
        </p>
      )}
      <p>{whoMay(operation)}</p>
      <pre tabIndex={0} aria-label={`${operation.operationId} with curl`}>
        {curlOf(call, window.location.origin)}
      </pre>
      {parameters.length > 0 && (
        <FieldTable
          title="Parameters"
          of={operation.operationId}
          fields={parameters.map((parameter) => ({
            name: `${parameter.name} (${parameter.in})`,
            kind: kindOf(document, parameter.schema ?? {}),
            isRequired: parameter.required ?? false,
            about: parameter.description ?? '',
          }))}
        />
      )}
      {body !== null && (
        <FieldTable
          title={`Body: ${body.media}`}
          of={operation.operationId}
          fields={fieldsOf(document, body.schema)}
        />
      )}
      {Object.entries(operation.responses).map(([status, { description, content }]) => (
        <AnswerOf
          key={status}
          document={document}
          call={call}
          status={status}
          about={description ?? ''}
          body={bodyOf(content)}
        />
      ))}
    </div>
  );
}

interface AnswerProps extends Props {
  status: string;
  about: string;
  body: ReturnType<typeof bodyOf>;
}

/** An answer; errors have one shape, which is told once at the top. */
function AnswerOf({ document, call, status, about, body }: AnswerProps) {
  const isError = status.startsWith('4') || status.startsWith('5');
  const title = `${status} ${body === null ? 'without a body' : isError ? '' : body.media}`.trim();
  if (isError || body === null) {
    return (
      <p className={styles.answer}>
        <b>{title}</b> <Words text={about} />
      </p>
    );
  }
  return (
    <FieldTable
      title={title}
      of={call.operation.operationId}
      about={about}
      fields={fieldsOf(document, body.schema)}
    />
  );
}

function whoMay({ security = [] }: Operation): string {
  const has = (way: string) => security.some((one) => way in one);
  if (has('api_key')) return 'With an API key or the cookie of a session.';
  if (has('session')) return 'With the cookie of a session only.';
  return 'Without signing in.';
}
