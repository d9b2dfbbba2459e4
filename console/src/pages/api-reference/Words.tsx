/** A text of the document: what stands in backquotes there is code. */
export const Words = ({ text }: { text: string }) =>
  text.split('`').map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part));
