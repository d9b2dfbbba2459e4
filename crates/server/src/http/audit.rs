//! The audit log: listed, and exported whole.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{Stream, StreamExt as _, stream};
use glovebox_protocol::ids::AuditId;
use glovebox_store::{AuditEntry, AuditFilter, StoreError};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answers::{Errors, MAX_PAGE, Page, PageQuery, PageSize, searched};
use super::caller::SystemAdmin;
use super::error::ApiError;
use super::views::AuditView;
use crate::app::App;
use crate::failure::chain;

/// Which entries of the audit log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// The beginning of the action, such as `profile.`.
    #[param(max_length = 200)]
    action: Option<String>,
    /// A part of the actor's name.
    #[param(max_length = 200)]
    actor: Option<String>,
    /// Not before this time.
    since: Option<DateTime<Utc>>,
    /// Before this time.
    until: Option<DateTime<Utc>>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<PageSize>,
}

impl AuditQuery {
    fn filter(self) -> Result<(AuditFilter, PageQuery), ApiError> {
        let page = PageQuery {
            cursor: self.cursor,
            limit: self.limit,
        };
        let before: Option<AuditId> = page.after()?;
        let filter = AuditFilter {
            action: searched("action", self.action)?,
            actor: searched("actor", self.actor)?,
            since: self.since,
            until: self.until,
            before,
        };
        Ok((filter, page))
    }
}

/// Lists entries of the audit log, the newest first.
#[utoipa::path(get, path = "/api/v1/admin/audit", tag = "admin", params(AuditQuery),
    security(("session" = [])), responses((status = 200, body = Page<AuditView>), Errors))]
pub(crate) async fn audit(
    State(app): State<App>,
    _: SystemAdmin,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditView>>, ApiError> {
    let (filter, page) = query.filter()?;
    let entries = app.store().audit(&filter, page.fetch()).await?;
    let id = |entry: &AuditEntry| entry.id.to_string();
    Ok(Json(page.page(entries, id, AuditView::from)))
}

/// In which form the audit log is exported.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExportForm {
    Csv,
    Json,
}

/// Exports the audit log from its newest entry to its oldest, with the same filter as the list. Where
/// it cannot be read to its end, the answer breaks off: one that ends in order is whole.
#[utoipa::path(get, path = "/api/v1/admin/audit/export/{form}", tag = "admin",
    params(("form" = ExportForm, Path, description = "`csv` or `json`"), AuditQuery),
    security(("session" = [])),
    responses((status = 200, description = "The entries, in the form that was asked for",
        content((String = "text/csv"), (Vec<AuditView> = "application/json"))), Errors))]
pub(crate) async fn export_audit(
    State(app): State<App>,
    _: SystemAdmin,
    Path(form): Path<ExportForm>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, ApiError> {
    let (filter, _) = query.filter()?;
    // What cannot be read at all is told in words: from here on it can only break off.
    let first = app.store().audit(&filter, MAX_PAGE).await?;
    let (kind, disposition) = match form {
        ExportForm::Json => ("application/json", "attachment; filename=\"audit.json\""),
        ExportForm::Csv => (
            "text/csv; charset=utf-8",
            "attachment; filename=\"audit.csv\"",
        ),
    };
    let headers = [("content-type", kind), ("content-disposition", disposition)];
    let body = Body::from_stream(exported(app, filter, first, form));
    Ok((headers, body).into_response())
}

/// How far an export is.
enum Export {
    /// This page comes next; whether it is the first.
    Page(Vec<AuditEntry>, bool),
    /// Everything was sent.
    Done,
}

/// The text of an export, page after page: no more than one is in memory.
fn exported(
    app: App,
    filter: AuditFilter,
    first: Vec<AuditEntry>,
    form: ExportForm,
) -> impl Stream<Item = Result<Bytes, StoreError>> {
    let begun = (filter, Export::Page(first, true));
    let pages = stream::try_unfold(begun, move |(mut filter, export)| {
        let app = app.clone();
        async move {
            let Export::Page(entries, is_first) = export else {
                return Ok(None);
            };
            let last = entries.last().map(|entry| entry.id);
            let mut text = if is_first { beginning(form) } else { "" }.to_owned();
            for (at, entry) in entries.into_iter().enumerate() {
                write(&mut text, form, is_first && at == 0, entry.into())?;
            }
            let next = match last {
                Some(_) => {
                    filter.before = last;
                    app.store().audit(&filter, MAX_PAGE).await?
                }
                None => Vec::new(),
            };
            let export = if next.is_empty() {
                text.push_str(end(form));
                Export::Done
            } else {
                Export::Page(next, false)
            };
            Ok::<_, StoreError>(Some((Bytes::from(text), (filter, export))))
        }
    });
    pages.inspect(|page: &Result<Bytes, StoreError>| {
        if let Err(error) = page {
            tracing::error!(error = chain(error), "exporting the audit log broke off");
        }
    })
}

const fn beginning(form: ExportForm) -> &'static str {
    match form {
        ExportForm::Json => "[",
        ExportForm::Csv => {
            "at,actor_kind,actor,address,action,object_kind,object_id,object,workspace_id,fields,request_id\r\n"
        }
    }
}

const fn end(form: ExportForm) -> &'static str {
    match form {
        ExportForm::Json => "]\n",
        ExportForm::Csv => "",
    }
}

/// Writes one entry, on a line of its own.
fn write(
    text: &mut String,
    form: ExportForm,
    is_first: bool,
    view: AuditView,
) -> Result<(), StoreError> {
    match form {
        ExportForm::Json => {
            text.push_str(if is_first { "\n" } else { ",\n" });
            let written = serde_json::to_string(&view);
            text.push_str(&written.map_err(|source| StoreError::Document {
                column: "fields",
                source,
            })?);
        }
        ExportForm::Csv => text.push_str(&row(view)),
    }
    Ok(())
}

fn row(view: AuditView) -> String {
    let cells = [
        view.at.to_rfc3339(),
        view.actor_kind,
        view.actor,
        view.address,
        view.action,
        view.object_kind,
        view.object_id.unwrap_or_default(),
        view.object,
        view.workspace_id.unwrap_or_default(),
        view.fields.join(" "),
        view.request_id,
    ];
    let cells: Vec<_> = cells.iter().map(|cell| cell_of(cell)).collect();
    format!("{}\r\n", cells.join(","))
}

/// A cell that no spreadsheet takes for a formula: not as a whole, and no part of it where the
/// spreadsheet separates by something else than commas.
fn cell_of(text: &str) -> String {
    let mut cell = String::with_capacity(text.len() + 2);
    cell.push('"');
    let mut may_begin = true;
    for (at, c) in text.chars().enumerate() {
        // By full-width letters some versions of spreadsheets begin a formula, too.
        let is_formula = matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠')
            || (at == 0 && matches!(c, '\t' | '\r' | '\n'));
        if may_begin && is_formula {
            cell.push('\'');
        }
        may_begin = match c {
            ';' | '\t' | '\r' | '\n' => true,
            // What stands around a cell or before it.
            '"' | '\'' => may_begin,
            c => may_begin && c.is_whitespace(),
        };
        if c == '"' {
            cell.push('"');
        }
        cell.push(c);
    }
    cell.push('"');
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_text_whatever_is_in_it() {
        for (text, cell) in [
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "\"'=1+1\""),
            ("\t=1", "\"'\t'=1\""),
            (" @x", "\" '@x\""),
            ("＝1", "\"'＝1\""),
            ("＋1", "\"'＋1\""),
            ("－1", "\"'－1\""),
            ("＠x", "\"'＠x\""),
            // A reader that separates by semicolons sees cells of its own.
            ("a;=1", "\"a;'=1\""),
            ("a;\"=1\"", "\"a;\"\"'=1\"\"\""),
            ("a\n-1", "\"a\n'-1\""),
            // In the middle of a word they are what they are.
            ("ada+1@example.com;a-b", "\"ada+1@example.com;a-b\""),
        ] {
            assert_eq!(cell_of(text), cell, "{text}");
        }
    }
}
