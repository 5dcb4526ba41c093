use std::fs;
use switchward_store::DataDir;

#[test]
fn a_folder_has_one_user_and_keeps_its_id() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap().join("deep/data");
    let first = DataDir::open(&path).unwrap();
    let error = DataDir::open(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("the data folder {} is in use by another process", path.display()));
    let clone = first.clone();
    let id = first.id().to_owned();
    drop(first);
    assert!(DataDir::open(&path).is_err(), "a clone holds the lock as well");
    drop(clone);
    assert_eq!(DataDir::open(&path).unwrap().id(), id);
    assert_eq!(id.len(), 32);
}

#[test]
fn another_format_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap();
    drop(DataDir::open(&path).unwrap());
    fs::write(path.join("FORMAT"), "7\n").unwrap();
    let expected = format!("the data folder {} has format 7, this program reads format 2", path.display());
    assert_eq!(DataDir::open(&path).unwrap_err().to_string(), expected);
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("letters.txt"), "dear").unwrap();
    assert!(DataDir::open(root.path()).unwrap_err().to_string().ends_with("so it is not a data folder"));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "nothing was created in it");
}

#[test]
fn a_data_folder_that_lost_its_format_is_not_taken_for_a_new_one() {
    let root = tempfile::tempdir().unwrap();
    drop(DataDir::open(root.path()).unwrap());
    fs::write(root.path().join("log/0.jnl"), "records").unwrap();
    fs::remove_file(root.path().join("FORMAT")).unwrap();
    assert!(DataDir::open(root.path()).is_err());
}

#[test]
fn an_interrupted_creation_is_taken_up() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["log", "state"] {
        fs::create_dir(root.path().join(folder)).unwrap();
    }
    fs::write(root.path().join("ID.tmp"), "").unwrap();
    DataDir::open(root.path()).unwrap();
    assert!(root.path().join("snapshots").is_dir());
}
