import { makeServe } from './serve';

const serve = makeServe();

/** Each page of this browser that shows a thread connects here. */
self.addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port) serve(port);
});
