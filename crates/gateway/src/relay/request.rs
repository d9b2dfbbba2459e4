//! What goes to an agent: somebody's request as it was signed, or one of the gateway's own, which
//! has no body.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::body::{BodyFault, SignedBody};

/// The body of a request to an agent: somebody's, or none.
pub(crate) struct AgentRequest(pub(crate) Option<SignedBody>);

impl Body for AgentRequest {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match &mut self.get_mut().0 {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(SignedBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.0.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), SignedBody::size_hint)
    }
}
