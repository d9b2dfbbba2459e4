import { Modal, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { Thread } from '../../api/views';
import { useChange } from '../../api/change';
import { changeThread, threadQuery, threadsKey } from '../../api/threads';
import { Form } from '../../parts/Form';

export function RenameThread({ thread, onClose }: { thread: Thread; onClose: () => void }) {
  const [title, setTitle] = useState(thread.title);
  const rename = useChange(
    () => changeThread(thread.id, { version: thread.version, title: title.trim() }),
    [threadQuery(thread.id).queryKey, threadsKey(thread.workspace_id)],
  );
  return (
    <Modal
      opened
      onClose={onClose}
      title="Rename this thread"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Form
        action="Rename"
        change={rename}
        isDisabled={title.trim() === '' || title === thread.title}
        onSubmit={() => rename.mutate(undefined, { onSuccess: onClose })}
      >
        <TextInput
          data-autofocus
          label="Title"
          value={title}
          maxLength={200}
          onChange={(event) => setTitle(event.currentTarget.value)}
        />
      </Form>
    </Modal>
  );
}
