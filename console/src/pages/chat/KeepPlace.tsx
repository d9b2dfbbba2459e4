import { Component } from 'react';

interface Props {
  /** Where what stands above is asked for: another place once more of it is shown. */
  cursor: string | undefined;
  /** How far from the end somebody reads. */
  measure: () => number;
  keep: (fromEnd: number) => void;
}

/**
 * Keeps what is read where it is while something comes above it. It measures when that is about to
 * be shown: until then people scroll, and replies grow. Only a class is asked at that moment.
 */
export class KeepPlace extends Component<Props> {
  override getSnapshotBeforeUpdate({ cursor }: Props): number | null {
    // The first page has nothing below it that is read.
    const isAbove = cursor !== undefined && cursor !== this.props.cursor;
    return isAbove ? this.props.measure() : null;
  }

  override componentDidUpdate(_props: Props, _state: unknown, fromEnd: number | null) {
    if (fromEnd !== null) this.props.keep(fromEnd);
  }

  override render() {
    return null;
  }
}
