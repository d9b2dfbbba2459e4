import { memo } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';
import { CodeBlock } from './CodeBlock';
import { pictureName, safeLink } from './links';
import styles from './Markdown.module.css';
import { OutLink } from './OutLink';

/** A part of what the library has read; only what is asked of it here. */
interface Node {
  type: string;
  value?: string;
  children?: Node[];
}

const textIn = (node: Node | undefined): string =>
  node === undefined ? '' : (node.value ?? (node.children ?? []).map(textIn).join(''));

/** The page has the first headings; those of a text stand below them. */
const components: Components = {
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h4>{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  a: ({ href, children }) => <OutLink to={href}>{children}</OutLink>,
  // A picture would be asked of another host, which learns who reads this.
  img: ({ src, alt }) => (
    <OutLink to={typeof src === 'string' ? src : undefined}>{pictureName(alt)}</OutLink>
  ),
  // Of a list of tasks: nobody can tick them here.
  input: ({ checked }) => (checked ? '☑ ' : '☐ '),
  pre: ({ node }) => {
    const [code] = (node as Node | undefined)?.children ?? [];
    return (
      <div className={styles.block}>
        <CodeBlock text={textIn(code).replace(/\n$/, '')} what="Code" />
      </div>
    );
  },
  table: ({ children }) => (
    <div className={styles.scroll} role="region" aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
};

const plugins = [remarkGfm];

/** Markdown of a model or a program. HTML in it is text, and nothing in it asks another host. */
export const MarkdownText = memo(function MarkdownText({ text }: { text: string }) {
  return (
    <div className={styles.markdown}>
      <ReactMarkdown
        remarkPlugins={plugins}
        components={components}
        urlTransform={(address) => safeLink(address) ?? ''}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
});
