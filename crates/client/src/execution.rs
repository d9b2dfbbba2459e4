//! The stream of one execution.

use glovebox_protocol::event::{EventBody, Output};
use glovebox_protocol::frame::{Decoder, Frame, FrameKind, is_modest};
use glovebox_protocol::ids::ExecutionId;

use crate::error::ClientError;
use crate::pool::Answer;

/// A framed answer that is being read.
pub(crate) struct Frames {
    answer: Option<Answer>,
    decoder: Decoder,
}

impl Frames {
    pub(crate) fn new(answer: Answer) -> Self {
        Self {
            answer: Some(answer),
            decoder: Decoder::default(),
        }
    }

    /// The next frame. That there is none is an error: the last one is known by its content.
    pub(crate) async fn next(&mut self) -> Result<Frame, ClientError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(frame);
            }
            let answer = self.answer.as_mut().ok_or(ClientError::Cut)?;
            match answer.chunk().await {
                Ok(Some(chunk)) => self.decoder.push(&chunk),
                // A sandbox that ends takes its agent with it, in the middle of a chunk.
                Ok(None) | Err(_) => return Err(ClientError::Cut),
            }
        }
    }

    /// Makes sure that nothing follows, and gives the connection back.
    pub(crate) async fn end(&mut self) -> Result<(), ClientError> {
        let Some(mut answer) = self.answer.take() else {
            return Ok(());
        };
        let mut more = self.decoder.is_mid_frame();
        while !more && let Some(chunk) = answer.chunk().await? {
            more = !chunk.is_empty();
        }
        if more {
            return Err(ClientError::OutOfPlace);
        }
        answer.done();
        Ok(())
    }
}

/// The events of one execution, as they come. Dropped before its end it tells the agent to end
/// the execution.
pub struct Execution {
    id: ExecutionId,
    frames: Frames,
    over: bool,
}

impl Execution {
    pub(crate) fn new(answer: Answer, id: ExecutionId) -> Self {
        Self {
            id,
            frames: Frames::new(answer),
            over: false,
        }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> ExecutionId {
        self.id
    }

    /// The next event; nothing after the last one, which is [`EventBody::ExecutionEnded`] or
    /// [`EventBody::Failed`].
    ///
    /// # Errors
    /// [`ClientError::Cut`] when the sandbox ended first; others when the agent talks nonsense.
    pub async fn next(&mut self) -> Result<Option<EventBody>, ClientError> {
        if self.over {
            return Ok(None);
        }
        let frame = self.frames.next().await?;
        let event = match frame.kind {
            FrameKind::Stdout => EventBody::Stdout(Output(frame.payload)),
            FrameKind::Stderr => EventBody::Stderr(Output(frame.payload)),
            FrameKind::Data => return Err(ClientError::OutOfPlace),
            FrameKind::Event if !is_modest(&frame.payload) => {
                return Err(ClientError::TooManyValues);
            }
            FrameKind::Event => {
                serde_json::from_slice(&frame.payload).map_err(ClientError::Answer)?
            }
        };
        if matches!(event, EventBody::ExecutionEnded(_) | EventBody::Failed(_)) {
            self.over = true;
            self.frames.end().await?;
        }
        Ok(Some(event))
    }
}
