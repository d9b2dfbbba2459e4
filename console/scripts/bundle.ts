import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import type { Plugin, Rolldown } from 'vite';

/** The most that may go over the wire, in kB of 1000 bytes as they are and not compressed. */
const LIMITS = {
  /** Scripts that every page waits for. */
  'the first scripts': 520,
  /** Styles that every page waits for. */
  'the first styles': 130,
  /** Scripts that one page, or one part of it, asks for beyond those. */
  'a page': 220,
};

type What = keyof typeof LIMITS;
type Bundle = Rolldown.OutputBundle;
type Chunk = Rolldown.OutputChunk;

/**
 * Fails a build in which a page has become too large, or that lacks styles of what it shows. Both
 * come one import at a time and are seen by nobody.
 */
export function checkBundle(): Plugin {
  return {
    name: 'glovebox:check-bundle',
    apply: 'build',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_options, bundle) {
        const faults = [...tooLarge(bundle, (line) => this.info(line)), ...withoutStyles(bundle)];
        if (faults.length > 0) this.error(faults.join('\n'));
      },
    },
  };
}

const chunksOf = (bundle: Bundle): Chunk[] =>
  Object.values(bundle).filter((one) => one.type === 'chunk');

const textOf = (file: Bundle[string] | undefined): string => {
  if (file?.type !== 'asset') return '';
  return typeof file.source === 'string' ? file.source : Buffer.from(file.source).toString();
};

const stylesOf = (bundle: Bundle): string =>
  Object.values(bundle)
    .filter(({ fileName }) => fileName.endsWith('.css'))
    .map(textOf)
    .join('\n');

/** A chunk with everything that has to be there before it runs. */
function withImports(bundle: Bundle, chunk: Chunk, found = new Set<Chunk>()): Set<Chunk> {
  if (found.has(chunk)) return found;
  found.add(chunk);
  for (const name of chunk.imports) {
    const imported = bundle[name];
    if (imported?.type === 'chunk') withImports(bundle, imported, found);
  }
  return found;
}

const codeOf = (chunks: Iterable<Chunk>) => [...chunks].map(({ code }) => code).join('');

function cssOf(bundle: Bundle, chunks: Iterable<Chunk>): string {
  const names = new Set([...chunks].flatMap((one) => [...(one.viteMetadata?.importedCss ?? [])]));
  return [...names].map((name) => textOf(bundle[name])).join('');
}

function tooLarge(bundle: Bundle, tell: (line: string) => void): string[] {
  const faults: string[] = [];
  const look = (what: What, name: string, text: string) => {
    const size = Buffer.byteLength(text) / 1000;
    const packed = gzipSync(text).length / 1000;
    tell(`${name}: ${size.toFixed(0)} kB, ${packed.toFixed(0)} kB compressed`);
    if (size <= LIMITS[what]) return;
    faults.push(
      `${name}: ${size.toFixed(0)} kB, and ${what} may have ${LIMITS[what]} kB. Load what few ` +
        'need when it is needed; raise the limit in scripts/bundle.ts only for what all need.',
    );
  };
  const chunks = chunksOf(bundle);
  const first = new Set<Chunk>();
  for (const entry of chunks.filter(({ isEntry }) => isEntry)) withImports(bundle, entry, first);
  look('the first scripts', 'the first scripts', codeOf(first));
  look('the first styles', 'the first styles', cssOf(bundle, first));
  for (const page of chunks.filter(({ isDynamicEntry }) => isDynamicEntry)) {
    // Whoever asks for it has its own parts already.
    const asking = chunks
      .filter(({ dynamicImports }) => dynamicImports.includes(page.fileName))
      .map((one) => withImports(bundle, one));
    const isThere = (one: Chunk) => first.has(one) || asking.every((all) => all.has(one));
    const more = [...withImports(bundle, page)].filter((one) => !isThere(one));
    look('a page', page.name, codeOf(more));
  }
  return faults;
}

/** Classes of Mantine that scripts name, and that the styles of the build lack. */
function withoutStyles(bundle: Bundle): string[] {
  const all = readFileSync(
    createRequire(import.meta.url).resolve('@mantine/core/styles.css'),
    'utf8',
  );
  const styles = stylesOf(bundle);
  const names = new Set(codeOf(chunksOf(bundle)).match(/\bm_[0-9a-f]{6,8}\b/g));
  const missing = [...names].filter((name) => all.includes(`.${name}`) && !styles.includes(name));
  if (missing.length === 0) return [];
  const classes = missing.join(', ');
  return [
    `styles of Mantine are missing: ${classes}. Find the files of @mantine/core/styles that have ` +
      'these classes, and name them in src/app/mantine.ts.',
  ];
}
