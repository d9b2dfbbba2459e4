import { memo, useMemo } from 'react';
import { terminalText } from '../../chat/terminal';
import type { Block, Display, Output } from '../../chat/view';
import { CodeBlock } from '../../parts/CodeBlock';
import { Fold } from '../../parts/Fold';
import { Markdown } from '../../parts/Markdown';
import { DisplayPicture } from './DisplayPicture';
import styles from './Thread.module.css';

/** What code showed. */
export const OutputView = ({ output }: { output: Output }) =>
  output.blocks.map((block, index) => <BlockView key={index} block={block} />);

const BlockView = memo(function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case 'stream':
      return (
        <Printed
          raw={block.raw}
          what={block.stream === 'stdout' ? 'Output' : 'Errors and warnings'}
          isCut={block.cut}
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
            <Printed raw={block.traceback} what="Traceback" isCut={false} />
          </Fold>
        </div>
      );
    case 'remark':
      return <div className={styles.remark}>{terminalText(block.text)}</div>;
  }
});

function Printed({ raw, what, isCut }: { raw: string; what: string; isCut: boolean }) {
  const text = useMemo(() => terminalText(raw).replace(/\n$/, ''), [raw]);
  if (text.trim() === '') return null;
  return (
    <>
      {isCut && <div className={styles.remark}>Only the end of it is kept here.</div>}
      <CodeBlock text={text} what={what} />
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
          <Printed raw={shown.text} what={what} isCut={false} />
          {shown.hasHtml && (
            <div className={styles.remark}>
              Its HTML form is not shown here. Save it to a file to look at it as a page.
            </div>
          )}
        </>
      );
  }
}
