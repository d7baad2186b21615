"""Every feature gate that a kubelet of 1.34 to 1.37 knows, as data.

Read from what the kubelet's binary registers (`pkg/features`, with the gates of apiserver, apiextensions-apiserver, client-go,
component-base and controller-manager) in v1.34.4, v1.35.4, v1.36.3 and v1.37.2.
"""

from __future__ import annotations

TABLE = """\
APIResponseCompression b+ b+ b+ b+
APIServerIdentity b+ b+ b+ b+
APIServerTracing g+! g+! g+! .
APIServerWebhookAuthenticationToken . . . a-
APIServingWithRoutine a- a- a- a-
AggregatedDiscoveryRemoveBetaType d+ d+! d+! d+!
AllAlpha a- a- a- a-
AllBeta b- b- b- b-
AllowDNSOnlyNodeCSR d- d- d- d-
AllowInsecureKubeletCertificateSigningRequests d- d- d- d-
AllowOverwriteTerminationGracePeriodSeconds d- d-! d-! d-!
AllowParsingUserUIDFromCertAuth b+ b+ b+ b+
AllowServiceExternalIPs . . g+ g+
AllowServiceLBStatusOnNonLB d-! . . .
AllowUnsafeMalformedObjectDeletion a- a- a- b+
AnonymousAuthConfigurableEndpoints g+! g+! g+! .
AnyVolumeDataSource g+! g+! g+! .
AtomicFIFO . . b+ b+
AtomicWriteVolumeUserFields . . . a-
AuthorizeNodeWithSelectors g+! g+! g+! . AuthorizeWithSelectors
AuthorizePodWebsocketUpgradeCreatePermission . b+ b+ b+
AuthorizeWithSelectors g+! g+! g+! .
BtreeWatchCache g+! g+! g+! .
CBORServingAndStorage a- a- a- a-
CPUManagerPolicyAlphaOptions a- a- a- a-
CPUManagerPolicyBetaOptions b+ b+ b+ b+
CPUManagerPolicyOptions g+! g+! g+! g+!
CRDObservedGenerationTracking . b- b+ b+
CRDValidationRatcheting g+! g+! g+! g+!
CRIListStreaming . . a- a-
CSIMigrationPortworx g+! g+! . .
CSIServiceAccountTokenSecrets . b+ g+! g+!
CSIVolumeHealth a- a- a- a-
ChangeContainerStatusOnKubeletRestart . d- d- d-
ClearingNominatedNodeNameAfterBinding a- b+ b+ b+
ClientsAllowCARotation . . b+ b+
ClientsAllowCBOR a- a- a- a-
ClientsAllowTLSCacheGC . . b+ b+
ClientsPreferCBOR a- a- a- a-
CloudControllerManagerWatchBasedRoutesReconciliation . a- a- a-
CloudControllerManagerWebhook a- a- a- a-
ClusterTrustBundle b- b- b- g+
ClusterTrustBundleProjection b- b- b- g+ ClusterTrustBundle
ComponentFlagz a- a- b+ b+
ComponentSLIs g+! . . .
ComponentStatusz a- a- b+ b+
CompositePodGroup . . . a- GenericWorkload TopologyAwareWorkloadScheduling
ConcurrentWatchObjectDecode b- b- b- b+
ConsistentListFromCache g+! g+! g+! .
ConsistentListFromCacheSkipTimeoutFallback . . . a-
ConstrainedImpersonation . a- b+ b+
ContainerCheckpoint b+ b+ b+ b+
ContainerRestartRules a- b+ b+ b+
ContainerStopSignals a- a- a- a-
ContextualLogging b+ b+ b+ b+
CoordinatedLeaderElection b- b- b- b-
CronJobsScheduledAnnotation g+! . . .
CrossNamespaceVolumeDataSource a- a- a- a-
CustomCPUCFSQuotaPeriod a- a- g+ g+
CustomResourceFieldSelectors g+! g+! g+! g+!
DRAAdminAccess b+ b+ g+! g+! DynamicResourceAllocation
DRAConsumableCapacity a- a- b+ b+ DynamicResourceAllocation
DRADerivedAttributes . . . a- DynamicResourceAllocation
DRADeviceBindingConditions a- a- b+ b+ DRAResourceClaimDeviceStatus DynamicResourceAllocation
DRADeviceCompatibilityGroups . . . a- DRAPartitionableDevices DynamicResourceAllocation
DRADeviceTaintRules . a- b- g+ DRADeviceTaints
DRADeviceTaints a- a- b+ g+ DynamicResourceAllocation
DRAExtendedResource a- a- b+ g+! DynamicResourceAllocation
DRAFractionalCapacityRange . . . b- DRAConsumableCapacity
DRAListTypeAttributes . . a- a- DynamicResourceAllocation
DRANodeAllocatableResources . . a- a- DynamicResourceAllocation
DRAOptionalNodeOperations . . . a- DynamicResourceAllocation NodeDeclaredFeatures
DRAPartitionableDevices a- a- b+ b+ DynamicResourceAllocation
DRAPartitionableDevicesType . . . a- DRAPartitionableDevices DRAResourcePoolStatus DynamicResourceAllocation
DRAPrioritizedList b+ b+ g+ g+! DynamicResourceAllocation
DRAResourceClaimDeviceStatus b+ b+ b+ g+!
DRAResourceClaimGranularStatusAuthorization . . b+ b+ DRAResourceClaimDeviceStatus DynamicResourceAllocation
DRAResourcePoolStatus . . a- a- DynamicResourceAllocation
DRASchedulerFilterTimeout b+ b+ b+ b+ DynamicResourceAllocation
DRAWorkloadResourceClaims . . a- b- DynamicResourceAllocation GenericWorkload
DeclarativeValidation b+ b+ g+! g+!
DeclarativeValidationBeta . . b+ b+ DeclarativeValidation
DeclarativeValidationTakeover b- b- d- d-! DeclarativeValidation
DefaultPodSysctls . . . a-
DeploymentReplicaSetTerminatingReplicas a- b+ b+ b+
DetectCacheInconsistency b+ b+ b+ b+
DisableAllocatorDualWrite g+ g+! g+! g+! MultiCIDRServiceAllocator
DisableCPUQuotaWithExclusiveCPUs b+ b+ d+ d+!
DisableNodeKubeProxyVersion d+ d+ d+! d+!
DynamicResourceAllocation g+ g+! g+! g+!
EmptyDirVolumeMode . . . a-
EnvFiles a- b+ b+ b+
EtcdRangeStream . . . b+
EventedPLEG a- a- a- a- PLEGOnDemandRelist@37
EvictionRequestAPI . . . a-
ExcludeAdmissionWebhookVirtualResources . . . b+
ExecProbeTimeout g+ g+! g+! g+!
ExtendWebSocketsToKubelet . . b+ b+ NodeDeclaredFeatures
ExternalServiceAccountTokenSigner b+ b+ g+! g+!
GRPCContainerProbeTLS . . . a-
GangScheduling . a- a- . GenericWorkload
GenericWorkload . a- a- b-
GitRepoVolumeDriver d- d- d-! d-!
GracefulNodeShutdown b+ b+ b+ b+
GracefulNodeShutdownBasedOnPodPriority b+ b+ b+ b+ GracefulNodeShutdown
H2CContainerProbe . . . a- NodeDeclaredFeatures
HPAConfigurableTolerance a- b+ b+ g+!
HPAGeneration . . . b+
HPAOptimizedSelectorStore . . . b+
HPAScaleToZero a- a- a- b+
HonorPVReclaimPolicy g+! g+! . .
HostnameOverride a- b+ b+ g+!
HugepageAwareEviction . . . b+
ImageMaximumGCAge b+ g+! g+! g+!
ImageVolume b- b+ g+! g+!
ImageVolumeWithDigest . . a- a- ImageVolume
InOrderInformers b+ b+ g+! g+!
InOrderInformersBatchProcess . b+ b+ b+
InPlacePodLevelResourcesVerticalScaling . a- b+ b+ InPlacePodVerticalScaling NodeDeclaredFeatures PodLevelResources
InPlacePodVerticalScaling b+ g+! g+! g+!
InPlacePodVerticalScalingAllocatedStatus d- d- . . InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveCPUs a- a- a- a- InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveMemory a- a- a- a- InPlacePodVerticalScaling MemoryManager
InPlacePodVerticalScalingInitContainers . . b+ g+! InPlacePodVerticalScaling NodeDeclaredFeatures
InPlacePodVerticalScalingMemoryBackedVolumes . . . a- InPlacePodVerticalScaling NodeDeclaredFeatures
InPlacePodVerticalScalingSchedulerPreemption . . . a- InPlacePodVerticalScaling
InTreePluginPortworxUnregister a- a- . .
InformerResourceVersion a- g+ g+ g+
InterPodAffinityHostnameFastPath . . . a-
JobBackoffLimitPerIndex g+! g+! g+! .
JobManagedBy b+ g+! g+! g+!
JobPodReplacementPolicy g+! g+! g+! .
JobSuccessPolicy g+! g+! g+! .
KMSv1 d- d- d- d-
KubeProxyIPVS . . . d+
KubeProxyNFTablesLocalhostNodePorts . . . a-
KubeletAllocatedPodsEndpoint . . . a- InPlacePodVerticalScaling
KubeletCgroupDriverFromCRI g+! g+! g+! g+!
KubeletCrashLoopBackOffMax a- b+ b+ b+
KubeletEnsureSecretPulledImages a- b+ b+ b+
KubeletFineGrainedAuthz b+ b+ g+! g+!
KubeletInUserNamespace a- a- a- b+
KubeletPSI b+ b+ g+! g+!
KubeletPodResourcesDynamicResources b+ b+ g+! g+!
KubeletPodResourcesGet b+ b+ g+! g+!
KubeletPodResourcesListUseActivePods d+ d+ d+ d+
KubeletRegistrationGetOnExistsOnly d- d- d- d-
KubeletSeparateDiskGC b+ b+ b+ b+
KubeletServiceAccountTokenForCredentialProviders b+ b+ b+ b+
KubeletTracing g+! g+! g+! g+!
ListFromCacheSnapshot b+ b+ b+ b+
LoadBalancerIPMode g+! . . .
LocalStorageCapacityIsolationFSQuotaMonitoring b- b- b- b-
LogarithmicScaleDown g+! g+! g+! .
LoggingAlphaOptions a- a- a- a-
LoggingBetaOptions b+ b+ b+ b+
ManifestBasedAdmissionControlConfig . . a- b+
MatchLabelKeysInPodAffinity g+! g+! g+! g+!
MatchLabelKeysInPodTopologySpread b+ b+ b+ b+
MatchLabelKeysInPodTopologySpreadSelectorMerge b+ b+ b+ b+ MatchLabelKeysInPodTopologySpread
MaxUnavailableStatefulSet a- b- b- b+
MemoryManager g+! g+! . .
MemoryQoS a- a- a- b+
MultiCIDRServiceAllocator g+! g+! g+! g+!
MutableCSINodeAllocatableCount b- b+ g+! g+!
MutablePVNodeAffinity . a- a- a-
MutablePodResourcesForSuspendedJobs . a- b+ b+
MutableSchedulingDirectivesForSuspendedJobs . a- b+ b+
MutatingAdmissionPolicy b- b- g+ g+
NFTablesNetlink . . . b+
NFTablesProxyMode g+! g+! g+! g+!
NativeHistograms . . a- b+
NodeControllerLeaseCircuitBreaker . . . b+ AtomicFIFO
NodeDeclaredFeatures . a- b+ g+!
NodeInclusionPolicyInPodTopologySpread g+! g+! g+! g+!
NodeLifecycleConditions . . . a-
NodeLogQuery b- b- g+! g+!
NodeSwap g+! g+! g+! g+!
NominatedNodeNameForExpectation a- b+ b+ b+
OpenAPIEnums b+ b+ b+ b+
OpportunisticBatching . b+ b+ b+
OrderedNamespaceDeletion g+! g+! g+! .
PLEGOnDemandRelist . . b+ g+!
PersistentVolumeClaimUnusedSinceTime . . a- b+
PodAndContainerStatsFromCRI a- a- a- b-
PodCertificateRequest a- b- b- g+ AuthorizeNodeWithSelectors
PodDeletionCost b+ b+ b+ b+
PodGroupPreemptionPolicy . . . a- GenericWorkload
PodIndexLabel g+! . . .
PodLevelResourceManagers . . a- b- PodLevelResources
PodLevelResources b+ b+ b+ b+
PodLevelResourcesFixDefaulting . . . b+ PodLevelResources
PodLevelResourcesFixKubeletQOSClass . . . b+ PodLevelResources
PodLifecycleSleepAction g+! g+! g+! .
PodLifecycleSleepActionAllowZero g+! g+! g+! . PodLifecycleSleepAction
PodLogsQuerySplitStreams a- a- a- a-
PodObservedGenerationTracking b+ g+! g+! g+!
PodReadyToStartContainersCondition b+ b+ b+ g+!
PodSchedulingReadiness g+! g+! g+! g+!
PodTopologyLabelsAdmission a- b+ b+ b+
PodsAPI . . a- b+
PortForwardWebsockets b+ b+ b+ b+
PreferSameTrafficDistribution b+ g+! g+! g+!
PreventStaticPodAPIReferences b+ b+ b+ .
ProbeHostPodSecurityStandards g+! . . .
ProcMountType b+ b+ g+! g+! UserNamespacesSupport
QOSReserved a- a- a- a-
RecoverVolumeExpansionFailure g+! g+! g+! g+!
RecursiveReadOnlyMounts g+! g+! g+! g+!
ReduceDefaultCrashLoopBackOffDecay a- a- a- a-
RelaxedDNSSearchValidation g+! g+! g+! .
RelaxedEnvironmentVariableValidation g+! g+! g+! g+!
RelaxedServiceNameValidation a- a- b+ g+!
ReloadKubeletClientCAFile . . b+ b+
ReloadKubeletServerCertificateFile b+ b+ b+ b+
RemoteRequestHeaderUID b+ b+ b+ b+
ResilientWatchCacheInitialization g+! g+! g+! .
ResourceHealthStatus a- a- b+ b+ DynamicResourceAllocation
ResourceHealthStatusMessage . . b+ b+ ResourceHealthStatus
RestartAllContainersOnContainerExits . a- b+ b+ ContainerRestartRules NodeDeclaredFeatures
RetryGenerateName g+! g+! g+! .
RotateKubeletServerCertificate b+ b+ b+ b+
RuntimeClassInImageCriApi a- a- a- a-
SELinuxChangePolicy b+ b+ g+! g+!
SELinuxMount b- b- b- g+
SELinuxMountReadWriteOncePod b+ b+ g+! g+!
SchedulerAsyncAPICalls b- b- b- b-
SchedulerAsyncPreemption b+ b+ b+ b+
SchedulerPopFromBackoffQ b+ b+ b+ b+
SchedulerPreQueueingHints . . . a-
SchedulerQueueingHints g+! g+! g+! .
SeparateCacheWatchRPC d- d- d-! d-!
SeparateTaintEvictionController g+! g+! g+! g+!
ServiceAccountNodeAudienceRestriction b+ b+ b+ b+
ServiceAccountTokenJTI g+! g+! g+! g+!
ServiceAccountTokenNodeBinding g+! g+! g+! g+! ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenNodeBindingValidation g+! g+! g+! g+!
ServiceAccountTokenPodNodeInfo g+! g+! g+! g+!
ServiceCIDRStatusFieldWiping . . d+ d+
ServiceTrafficDistribution g+! g+! . .
ShardedListAndWatch . . a- a-
SidecarContainers g+! g+! g+! .
SizeBasedListCostEstimate b+ b+ b+ b+
SizeMemoryBackedVolumes g+! . . .
StaleControllerConsistencyDaemonSet . . b+ b+ AtomicFIFO
StaleControllerConsistencyHPA . . . b+ AtomicFIFO
StaleControllerConsistencyJob . . b+ b+ AtomicFIFO
StaleControllerConsistencyReplicaSet . . b+ b+ AtomicFIFO
StaleControllerConsistencyStatefulSet . . b+ b+ AtomicFIFO
StatefulSetAutoDeletePVC g+! . . .
StatefulSetRecreateStrategy . . . a-
StatefulSetSemanticRevisionComparison b+ b+ b+ b+
StorageCapacityScoring a- a- a- b+
StorageNamespaceIndex d+ d+ d+ d+
StorageVersionAPI a- a- a- a- APIServerIdentity
StorageVersionHash b+ b+ b+ b+
StorageVersionMigrator a- b- b- g+
StreamingCollectionEncodingToJSON g+! g+! g+! .
StreamingCollectionEncodingToProtobuf g+! g+! g+! .
StrictCostEnforcementForVAP g+! . . .
StrictCostEnforcementForWebhooks g+! . . .
StrictIPCIDRValidation a- a- b+ b+
StructuredAuthenticationConfiguration g+! g+! g+! .
StructuredAuthenticationConfigurationEgressSelector b+ b+ b+ b+ StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationJWKSMetrics . b+ b+ b+ StructuredAuthenticationConfiguration
StructuredAuthorizationConfiguration g+! g+! . .
SupplementalGroupsPolicy b+ g+! g+! g+!
SystemdWatchdog b+ g+! g+! g+!
TaintTolerationComparisonOperators . a- a- a-
TokenRequestServiceAccountUIDValidation b+ b+ b+ b+
TopologyAwareHints g+! g+! . .
TopologyAwareWorkloadScheduling . . a- a- GenericWorkload
TopologyManagerPolicyAlphaOptions a- a- a- a-
TopologyManagerPolicyBetaOptions b+ b+ b+ b+
TopologyManagerPolicyOptions g+ g+ g+! g+!
TranslateStreamCloseWebsocketRequests b+ b+ b+ b+
UnauthenticatedHTTP2DOSMitigation b+ b+ b+ b+
UnknownVersionInteroperabilityProxy a- a- b+ b+ APIServerIdentity
UnlockWhileProcessingFIFO . . b+ b+
UserNamespacesHostNetworkSupport . a- a- a- NodeDeclaredFeatures@36 UserNamespacesSupport
UserNamespacesPodSecurityStandards a- . . .
UserNamespacesSupport b+ b+ g+! g+!
VolumeAttributesClass g+ g+ g+! g+!
VolumeBindMountOptions . . . a-
VolumeLimitScaling . a- a- b+
WatchCacheInitializationPostStartHook b- b- b+ g+!
WatchFromStorageWithoutResourceVersion d-! d-! . .
WatchList b+ b+ b+ b+
WatchListClient b- b+ b+ b+
WatchListCompression . . . b+
WebhookRoundTripLoadBalancing . . . b+
WinDSR g+! g+! g+! g+!
WinOverlay g+! g+! g+! g+!
WindowsCPUAndMemoryAffinity a- a- a- a- MemoryManager
WindowsGracefulNodeShutdown b+ b+ b+ b+ GracefulNodeShutdown
WindowsHostNetwork d- d- d- d-
WorkloadAwarePreemption . . a- . GangScheduling
WorkloadWithJob . . a- a- GenericWorkload
"""
"""A gate a line: its name, a column for each minor from 34 on, and the gates it depends on.

A column is `.` (unknown there) or a stage (a alpha, b beta, g GA, d deprecated), the default (+ on, - off) and ! where it is
locked to that. Dependencies are checked from 1.35 on, where both gates exist; `@36` after one: only from 1.36 on.
"""
