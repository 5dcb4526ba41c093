//! Kinds of rows whose type says which they are, and shared rows as they are sent.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};
use std::sync::Arc;

use crate::catalogue::{
    ApiKey, Assistant, ClusterMap, Definition, Server, Tenancy, Tenant, TenantChange, Version,
};
use crate::delivery::WebhookSource;
use crate::run::{Data, Run};
use crate::session::{LastMessage, Removed, Session};
use crate::work::WorkItem;
use crate::{History, Open, OpenItem, Row, SharedRow};

/// A type of which there is one kind of row.
pub trait RowKind: Sized {
    /// The value of a row; `None` if the row is of another kind.
    fn of(row: &Row) -> Option<&Self>;

    /// The row of a value.
    fn into_row(self) -> Row;
}

macro_rules! kinds {
    ($($kind:ident),*) => {$(
        impl RowKind for $kind {
            fn of(row: &Row) -> Option<&Self> {
                if let Row::$kind(value) = row { Some(value) } else { None }
            }

            fn into_row(self) -> Row {
                Row::$kind(self)
            }
        }
    )*};
}

kinds!(
    ApiKey,
    Assistant,
    ClusterMap,
    Data,
    Definition,
    LastMessage,
    Removed,
    Run,
    Server,
    Session,
    Tenancy,
    Tenant,
    TenantChange,
    Version,
    WebhookSource
);

impl RowKind for Open<WorkItem> {
    fn of(row: &Row) -> Option<&Self> {
        if let Row::OpenItem(OpenItem::Work(value)) = row { Some(value) } else { None }
    }

    fn into_row(self) -> Row {
        Row::OpenItem(OpenItem::Work(self))
    }
}

impl RowKind for History {
    fn of(row: &Row) -> Option<&Self> {
        if let Row::History(value) = row { Some(value) } else { None }
    }

    fn into_row(self) -> Row {
        Row::History(self.into())
    }
}

impl<T: RowKind> SharedRow<T> {
    /// A row of this kind; `None` if it is of another one.
    #[must_use]
    pub fn of(row: Arc<Row>) -> Option<Self> {
        Self::new(row, T::of)
    }
}

impl<C, T: RowKind + Encode<C>> Encode<C> for SharedRow<T> {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), EncodeError<W::Error>> {
        (**self).encode(e, ctx)
    }
}

impl<'b, C, T: RowKind + Decode<'b, C>> Decode<'b, C> for SharedRow<T> {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, DecodeError> {
        let row = Arc::new(T::decode(d, ctx)?.into_row());
        Self::of(row).ok_or_else(|| DecodeError::message("the row is of another kind"))
    }
}

impl<C, T: RowKind + CborLen<C>> CborLen<C> for SharedRow<T> {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        (**self).cbor_len(ctx)
    }
}
