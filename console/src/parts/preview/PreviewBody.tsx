import { Loader, Progress } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Preview } from '../../api/views';
import { type FileRef, markdownQuery, partOf, previewQuery, textQuery } from '../../api/files';
import { Loaded } from '../Loaded';
import { Notice } from '../Notice';
import { sentence } from '../../format/sentence';
import { Fragment } from './Fragment';
import { Pages } from './Pages';
import { Picture } from './Picture';
import styles from './PreviewPanel.module.css';
import { Sheets } from './Sheets';

interface Props {
  file: FileRef;
  name: string;
}

/** What there is to see of a file, or how far it is, or why there is nothing. */
export function PreviewBody({ file, name }: Props) {
  const query = useQuery(previewQuery(file));
  const { data } = query;
  return (
    <div className={styles.body}>
      {(data === undefined || query.isError) && (
        <div className={styles.pad}>
          <Loaded query={query}>{() => null}</Loaded>
        </div>
      )}
      {data && <Shown preview={data} name={name} />}
    </div>
  );
}

function Shown({ preview, name }: { preview: Preview; name: string }) {
  const { state, message, fix, is_cut, cut_message } = preview;
  if (state === 'waiting' || state === 'making') {
    return (
      <>
        <Making preview={preview} />
        {/* The first pages can be read while the others are made. */}
        {preview.pages && <Contents preview={preview} name={name} />}
      </>
    );
  }
  return (
    <>
      {message && (
        <div className={styles.pad}>
          <Notice tone="warn" title={sentence(message)}>
            {fix && <div>{sentence(fix)}</div>}
            <div>The download has all of it.</div>
          </Notice>
        </div>
      )}
      {state === 'failed' && !message && (
        <div className={styles.pad}>
          <Notice tone="warn" title="There is no preview of this file.">
            The download has all of it.
          </Notice>
        </div>
      )}
      {is_cut && !preview.sheets && (
        <div className={styles.bar} role="status">
          {sentence(cut_message ?? 'This is the first part of it')} The download has all of it.
        </div>
      )}
      <Contents preview={preview} name={name} />
    </>
  );
}

function Making({ preview }: { preview: Preview }) {
  const { state, progress, message, fix } = preview;
  const isCounted = progress && progress.of > 0;
  return (
    <div className={styles.pad}>
      <div role="status">
        <Loader size="sm" aria-hidden="true" />{' '}
        {state === 'waiting'
          ? 'The preview waits for its turn.'
          : isCounted
            ? `Making the preview: ${progress.done} of ${progress.of} pages`
            : 'Making the preview'}
      </div>
      {isCounted && (
        <Progress value={(progress.done / progress.of) * 100} aria-label="Pages made" />
      )}
      {/* It was begun and could not go on, and is begun again by itself. */}
      {message && (
        <div>
          {sentence(message)} {fix && sentence(fix)}
        </div>
      )}
      <div>You can leave it: it is made meanwhile. The download is there already.</div>
    </div>
  );
}

function Contents({ preview, name }: { preview: Preview; name: string }) {
  const { id, pages, sheets, image, text_media } = preview;
  if (pages && pages.length > 0) {
    return <Pages preview={id} pages={pages} count={preview.page_count ?? pages.length} />;
  }
  if (sheets && sheets.length > 0) {
    return <Sheets preview={id} sheets={sheets} cut={preview.cut_message ?? null} />;
  }
  if (image) return <Picture preview={id} name={name} size={image} />;
  if (text_media === 'markdown') return <Words preview={id} />;
  if (text_media === 'html') {
    return (
      <iframe
        className={styles.frame}
        title={`${name}, as a page without scripts`}
        // Nothing in it runs, and it is of no origin; the answer's own policy says the same.
        sandbox=""
        referrerPolicy="no-referrer"
        src={partOf(id, 'html')}
      />
    );
  }
  if (text_media) return <Text preview={id} name={name} />;
  return null;
}

function Words({ preview }: { preview: string }) {
  const query = useQuery(markdownQuery(preview));
  return (
    <div className={styles.words}>
      <Loaded query={query}>{({ html }) => <Fragment html={html} />}</Loaded>
    </div>
  );
}

function Text({ preview, name }: { preview: string; name: string }) {
  const query = useQuery(textQuery(preview));
  return (
    <Loaded query={query}>
      {(text) => (
        <pre className={styles.text} tabIndex={0} role="region" aria-label={`Text of ${name}`}>
          {text}
        </pre>
      )}
    </Loaded>
  );
}
