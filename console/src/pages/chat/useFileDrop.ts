import { useEffect, useEffectEvent, useState } from 'react';

/** What was dropped: files, and names of folders, which cannot be sent. */
export interface Dropped {
  files: File[];
  folders: string[];
}

export function droppedIn(transfer: DataTransfer): Dropped {
  const dropped: Dropped = { files: [], folders: [] };
  for (const item of transfer.items) {
    const entry = item.webkitGetAsEntry();
    const file = item.getAsFile();
    if (entry?.isDirectory) dropped.folders.push(entry.name);
    else if (file) dropped.files.push(file);
  }
  return dropped;
}

/** Takes files that are dropped anywhere on the page; says whether some are held over it. */
export function useFileDrop(isEnabled: boolean, onDrop: (dropped: Dropped) => void): boolean {
  const [isOver, setOver] = useState(false);
  const take = useEffectEvent(onDrop);
  useEffect(() => {
    if (!isEnabled) return;
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      // Leaving one element for another in the page is not leaving the page.
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      if (!hasFiles(event) || event.dataTransfer === null) return;
      event.preventDefault();
      setOver(false);
      take(droppedIn(event.dataTransfer));
    };
    window.addEventListener('dragover', over);
    window.addEventListener('dragleave', leave);
    window.addEventListener('drop', drop);
    return () => {
      window.removeEventListener('dragover', over);
      window.removeEventListener('dragleave', leave);
      window.removeEventListener('drop', drop);
    };
  }, [isEnabled]);
  return isOver;
}
