import { memo, useMemo } from 'react';
import { terminalText } from '../../chat/terminal';
import type { Block, Display, Output } from '../../chat/view';
import { CodeBlock } from '../../parts/CodeBlock';
import { ErrorBoundary } from '../../parts/ErrorBoundary';
import { Fold } from '../../parts/Fold';
import { Markdown } from '../../parts/Markdown';
import { DisplayPicture } from './DisplayPicture';
import styles from './Thread.module.css';

interface Props {
  output: Output;
  /** Whether more may come. */
  isLive: boolean;
}

/** What code showed. */
export const OutputView = ({ output: { blocks }, isLive }: Props) =>
  blocks.map((block, index) => (
    <ErrorBoundary key={index} fallback={<Unshown block={block} />}>
      <BlockView block={block} isLive={isLive && index === blocks.length - 1} />
    </ErrorBoundary>
  ));

/** What is left of something that could not be shown: it is kept, so it would fail each time. */
function Unshown({ block }: { block: Block }) {
  return (
    <>
      <div className={styles.remark}>This cannot be shown here; as it was sent:</div>
      <pre className={styles.unshown}>{writtenIn(block)}</pre>
    </>
  );
}

/** The words of a block, as they came. */
function writtenIn(block: Block): string {
  switch (block.kind) {
    case 'stream':
      return block.raw;
    case 'display':
      return block.shown.text;
    case 'error':
      return `${block.name}: ${block.value}`;
    case 'remark':
      return block.text;
  }
}

interface BlockProps {
  block: Block;
  isLive: boolean;
}

const BlockView = memo(function BlockView({ block, isLive }: BlockProps) {
  switch (block.kind) {
    case 'stream':
      return (
        <Printed
          raw={block.raw}
          what={block.stream === 'stdout' ? 'Output' : 'Errors and warnings'}
          isCut={block.cut}
          isLive={isLive}
        />
      );
    case 'display':
      return <DisplayView shown={block.shown} what={block.isResult ? 'Result' : 'Display'} />;
    case 'error':
      return (
        <div>
          <div className={styles.raised}>
            {block.name}: {terminalText(block.value)}
          </div>
          <Fold head="Traceback">
            <Printed raw={block.traceback} what="Traceback" />
          </Fold>
        </div>
      );
    case 'remark':
      return <div className={styles.remark}>{terminalText(block.text)}</div>;
  }
});

interface PrintedProps {
  raw: string;
  what: string;
  /** Whether its beginning is not kept. */
  isCut?: boolean;
  isLive?: boolean;
}

function Printed({ raw, what, isCut = false, isLive = false }: PrintedProps) {
  const text = useMemo(() => terminalText(raw).replace(/\n$/, ''), [raw]);
  if (text.trim() === '') return null;
  return (
    <>
      {isCut && <div className={styles.remark}>Only the end of it is kept here.</div>}
      <CodeBlock text={text} what={what} isLive={isLive} />
    </>
  );
}

function DisplayView({ shown, what }: { shown: Display; what: string }) {
  switch (shown.form) {
    case 'image':
      return <DisplayPicture mediaType={shown.mediaType} base64={shown.base64} text={shown.text} />;
    case 'markdown':
      return <Markdown text={shown.text} />;
    case 'text':
      return (
        <>
          <Printed raw={shown.text} what={what} />
          {shown.hasHtml && (
            <div className={styles.remark}>
              Its HTML form is not shown here. Save it to a file to look at it as a page.
            </div>
          )}
        </>
      );
  }
}
