import { Component, type ReactNode } from 'react';

interface Props {
  /** What stands in the place of what cannot be shown. */
  fallback: ReactNode;
  children: ReactNode;
}

/** Keeps what goes wrong while a piece of a page is shown to that piece: the rest stays of use. */
export class ErrorBoundary extends Component<Props, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}
