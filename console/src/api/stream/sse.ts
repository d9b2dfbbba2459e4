/** Reads server-sent events out of text that comes in any parts; gives the data of each. */
export class SseReader {
  #left = '';
  #data: string[] = [];

  feed(text: string): string[] {
    const lines = (this.#left + text).split(/\r\n|\n|\r(?!$)/);
    this.#left = lines.pop() ?? '';
    const events: string[] = [];
    for (const line of lines) {
      if (line === '') {
        if (this.#data.length > 0) events.push(this.#data.join('\n'));
        this.#data = [];
      } else if (line.startsWith('data:')) {
        this.#data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
      }
      // Ids and names stand in the data too; comments only show that somebody is there.
    }
    return events;
  }
}
