import type { Meters, Quotas } from '../api/views';
import { bytes } from '../format/bytes';
import { span } from '../format/time';
import { NO_JOBS_YET } from './jobs';
import { Limit, Meter, metersClass } from './Meter';

/** The six quotas of a workspace, with what is used of those that are counted. */
export function QuotaMeters({ quotas, meters }: { quotas: Quotas; meters: Meters }) {
  const { max_concurrent, max_jobs_per_hour, max_artifact_bytes_per_day } = quotas;
  const { max_uploaded_bytes } = quotas;
  const { concurrent, started_last_hour, artifact_bytes_today, uploaded_bytes } = meters;
  return (
    <div className={metersClass}>
      <Meter
        name="Sandboxes at once"
        used={concurrent}
        limit={max_concurrent}
        text={`${concurrent} of ${max_concurrent} now`}
      />
      <Meter
        name="New sandboxes per hour"
        used={started_last_hour}
        limit={max_jobs_per_hour}
        text={`${started_last_hour} of ${max_jobs_per_hour} this hour`}
      />
      <Meter
        name="Artifacts per day (UTC)"
        used={artifact_bytes_today}
        limit={max_artifact_bytes_per_day}
        text={`${bytes(artifact_bytes_today)} of ${bytes(max_artifact_bytes_per_day)} today`}
      />
      <Meter
        name="Attachments and knowledge base"
        used={uploaded_bytes}
        limit={max_uploaded_bytes}
        text={`${bytes(uploaded_bytes)} of ${bytes(max_uploaded_bytes)}`}
      />
      <Limit name="Largest sandbox" text={quotas.max_resource_class} />
      <Limit name="Longest job" text={span(quotas.max_job_seconds)} note={NO_JOBS_YET} />
    </div>
  );
}
