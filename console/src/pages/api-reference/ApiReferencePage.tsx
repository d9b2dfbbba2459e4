import { Anchor, Container, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { type ApiDocument, documentQuery } from '../../api/document';
import { Loaded } from '../../parts/Loaded';
import { Page, Panel } from '../../parts/Page';
import styles from './ApiReference.module.css';
import { CallDetails } from './CallDetails';
import { FieldTable } from './FieldTable';
import { callsByTag, fieldsOf, wordsOf } from './reading';
import { Words } from './Words';

/** The one shape of all errors. */
const ERROR = { $ref: '#/components/schemas/ErrorBody' };

/** The reference of the API, for those who are signed in and those who are not. */
export function ApiReferencePage() {
  const query = useQuery(documentQuery);
  return (
    <Container component="main" size="lg" py="lg">
      <Page
        title="API reference"
        about="Every call of this server's API. Click one for what it takes and answers."
        actions={
          <>
            <Anchor href="/api/v1/openapi.json">OpenAPI document</Anchor>
            <Anchor component={Link} to="/">
              Console
            </Anchor>
          </>
        }
      >
        <Loaded query={query}>{(document) => <Reference document={document} />}</Loaded>
      </Page>
    </Container>
  );
}

function Reference({ document }: { document: ApiDocument }) {
  const [typed, setTyped] = useState('');
  const wanted = typed.trim().toLowerCase();
  const groups = [...callsByTag(document)]
    .map(([tag, calls]) => ({ tag, calls: calls.filter((call) => wordsOf(call).includes(wanted)) }))
    .filter(({ calls }) => calls.length > 0);
  return (
    <>
      <p className={styles.about}>
        {document.info.title} {document.info.version}.{' '}
        <Words text={document.info.description ?? ''} />
      </p>
      <TextInput
        label="Filter calls"
        type="search"
        maw={320}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
      />
      <Panel title="Errors">
        <FieldTable title="The body of each" of="errors" fields={fieldsOf(document, ERROR)} />
      </Panel>
      {groups.length === 0 && <p role="status">No call contains “{typed}”.</p>}
      {groups.map(({ tag, calls }) => (
        <Panel key={tag} title={tag.charAt(0).toUpperCase() + tag.slice(1)}>
          <div>
            {calls.map((call) => (
              <CallDetails key={call.operation.operationId} document={document} call={call} />
            ))}
          </div>
        </Panel>
      ))}
    </>
  );
}
