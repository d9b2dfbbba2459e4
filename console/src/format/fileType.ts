const NAMES: Record<string, string> = {
  pptx: 'Presentation',
  ppt: 'Presentation',
  odp: 'Presentation',
  docx: 'Document',
  doc: 'Document',
  odt: 'Document',
  rtf: 'Document',
  pdf: 'PDF document',
  xlsx: 'Workbook',
  xlsm: 'Workbook',
  xls: 'Workbook',
  ods: 'Workbook',
  csv: 'CSV table',
  tsv: 'TSV table',
  json: 'JSON',
  txt: 'Text',
  md: 'Markdown',
  html: 'Web page',
  htm: 'Web page',
  png: 'Picture',
  jpg: 'Picture',
  jpeg: 'Picture',
  gif: 'Picture',
  webp: 'Picture',
  svg: 'Drawing',
  py: 'Python',
  zip: 'Archive',
};

/** What stands behind the last dot of a name, where something short does. */
export function ending(name: string): string {
  const found = /\.([A-Za-z0-9]{1,5})$/.exec(name);
  return found?.[1]?.toLowerCase() ?? '';
}

/** What kind of file it is, as people say it. */
export const typeName = (name: string, mediaType: string): string =>
  NAMES[ending(name)] ?? (mediaType === '' ? 'File' : mediaType);

const FIRST_PAGES = ['pptx', 'ppt', 'odp', 'docx', 'doc', 'odt', 'rtf', 'pdf'];

/** Whether a small picture of it says more than its type. */
export const hasPicture = (name: string, mediaType: string): boolean =>
  mediaType.startsWith('image/') || FIRST_PAGES.includes(ending(name));
