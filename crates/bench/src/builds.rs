//! The servers of a run: one for all blocks, or two builds in turns.

use anyhow::Context as _;
use std::path::Path;

use crate::load::{self, Shape};
use crate::measure::Product;
use crate::process::Server;

/// What is measured at each point.
pub(crate) enum Builds<'a> {
    /// A server that runs from the first block to the last.
    One(Server),
    /// Each block starts its server on an empty folder, and ends it. What a block leaves to be written and merged in the
    /// background then takes no CPU or disk of the next block, and a build that did more steps does not go on with more data.
    InTurns { ours: Build<'a>, beside: Build<'a> },
}

/// A build of the server, and how it is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Build<'a> {
    binary: &'a Path,
    /// The folder for the data of each of its servers.
    folder: &'a Path,
    /// `None` for its own choice.
    shards: Option<u32>,
}

impl<'a> Builds<'a> {
    /// The server, in turns with that of another build if there is one.
    ///
    /// # Errors
    /// The server does not start, or does not take its definitions. Two builds start later.
    pub(crate) async fn new(
        server: &'a Path,
        beside: Option<&'a Path>,
        folder: &'a Path,
        shards: Option<u32>,
    ) -> anyhow::Result<Self> {
        let ours = Build { binary: server, folder, shards };
        match beside {
            Some(binary) => Ok(Self::InTurns { ours, beside: Build { binary, ..ours } }),
            None => Ok(Self::One(ours.start(folder).await?)),
        }
    }

    /// Ends the server that runs from the first block to the last, if there is one.
    ///
    /// # Errors
    /// It does not end in time.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        match self {
            Self::One(server) => server.end().await,
            Self::InTurns { .. } => Ok(()),
        }
    }

    /// Measures one point; returns the figures of the server, and those of the other build if there is one. In odd rounds
    /// the server comes first, in even rounds the other build.
    pub(crate) async fn measure(
        &self,
        round: usize,
        shape: Shape,
    ) -> anyhow::Result<(Product, Option<Product>)> {
        match self {
            Self::One(server) => Ok((Product::measure(server, shape).await?, None)),
            Self::InTurns { ours, beside } if round % 2 == 1 => {
                let ours = ours.measure(shape).await?;
                Ok((ours, Some(beside.measure(shape).await?)))
            }
            Self::InTurns { ours, beside } => {
                let beside = beside.measure(shape).await?;
                Ok((ours.measure(shape).await?, Some(beside)))
            }
        }
    }
}

impl Build<'_> {
    /// Starts a server with its data in this folder, and warms it up.
    async fn start(&self, folder: &Path) -> anyhow::Result<Server> {
        let binary = self.binary.display();
        let server = Server::switchward(self.binary, folder, self.shards)
            .with_context(|| format!("failed to start {binary}; build it with --release"))?;
        load::deploy(&server).await?;
        Ok(server)
    }

    /// Measures one block of a server that has no data yet.
    async fn measure(&self, shape: Shape) -> anyhow::Result<Product> {
        // The folder is declared first, so that it is removed after the server has ended.
        let folder = tempfile::Builder::new().prefix("build-").tempdir_in(self.folder)?;
        let server = self.start(folder.path()).await?;
        Product::measure(&server, shape).await.with_context(|| self.binary.display().to_string())
    }
}
