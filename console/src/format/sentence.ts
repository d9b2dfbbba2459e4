/** The API writes messages like Rust does, in lower case and without a full stop. */
export function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return '';
  // The name of a setting is one only as it is written.
  const isName = /^\w+_\w+ /.test(trimmed);
  const begun = isName ? trimmed : trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.:;…]$/.test(begun) ? begun : `${begun}.`;
}
